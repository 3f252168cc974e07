"""Who keeps what on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem

if TYPE_CHECKING:
    from gpumem import Holder


def roots(device: str) -> list[Holder]:
    """Name who keeps memory of a device, each what it alone keeps, the most first."""
    holders = gpumem.holders()
    assert not holders.is_cut
    return [root for root in holders.roots if root.device == device]
