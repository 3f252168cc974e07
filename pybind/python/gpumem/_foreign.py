"""Files of other programs: each kind has a text, JSON, and what messages call it."""

from __future__ import annotations

from typing import TypeAlias

from gpumem import _gpumem

ForeignFile: TypeAlias = _gpumem.TorchSnapshot | _gpumem.LevelLog | _gpumem.NsightExport
