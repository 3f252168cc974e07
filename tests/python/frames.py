"""Recordings as `docs/formats.md` describes them, read without gpumem."""

from __future__ import annotations

import struct
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpumem.types import Recording

NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# Texts, bytes, lists and maps with the width of their length.
LENGTHS = {
    0xC4: ">B",
    0xC5: ">H",
    0xC6: ">I",
    0xD9: ">B",
    0xDA: ">H",
    0xDB: ">I",
    0xDC: ">H",
    0xDD: ">I",
    0xDE: ">H",
    0xDF: ">I",
}


class _Values:
    """MessagePack values, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def _take(self, n_bytes: int) -> bytes:
        self.at += n_bytes
        return self.content[self.at - n_bytes : self.at]

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def next(self) -> Any:
        kind = self._take(1)[0]
        if kind < 0x80 or kind >= 0xE0:
            return kind if kind < 0x80 else kind - 0x100
        if kind in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[kind]
        if kind in NUMBERS:
            return self._number(NUMBERS[kind])
        return self._sized(kind)

    def _sized(self, kind: int) -> Any:
        short = kind & (0x1F if kind >= 0xA0 else 0x0F)
        n = self._number(LENGTHS[kind]) if kind in LENGTHS else short
        if kind in (0xDE, 0xDF) or kind < 0x90:
            return {self.next(): self.next() for _ in range(n)}
        if kind in (0xDC, 0xDD) or kind < 0xA0:
            return [self.next() for _ in range(n)]
        content = self._take(n)
        return content if kind in (0xC4, 0xC5, 0xC6) else content.decode()


def frames(recording: Recording) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the kind and the fields of each frame."""
    content = recording.to_bytes()
    while content:
        n_bytes, checksum = struct.unpack("<II", content[:8])
        payload, content = content[8 : 8 + n_bytes], content[8 + n_bytes :]
        assert zlib.crc32(payload) == checksum
        values = _Values(payload)
        yield values.next(), values.next()


def of_kind(recording: Recording, kind: str) -> list[dict[str, Any]]:
    """Return the frames of one kind."""
    return [fields for of, fields in frames(recording) if of == kind]


def times(samples: dict[str, Any]) -> list[int]:
    """Return the times of a frame of samples."""
    return list(accumulate(samples["at_steps"]))
