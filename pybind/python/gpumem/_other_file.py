"""What the files have in common that other programs wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import ClassVar


class OtherFile(Protocol):
    """What gpumem read in a file that is not a recording."""

    _KIND: ClassVar[str]

    def text(self, width: int = 100) -> str:
        """Return the report; lines are at most `width` columns long."""

    def to_json(self) -> str:
        """Return everything as JSON."""
