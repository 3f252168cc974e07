"""A reader of Arrow's C stream interface, from its specification."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, ClassVar


class Schema(ctypes.Structure):
    """``ArrowSchema``."""


class Array(ctypes.Structure):
    """``ArrowArray``."""


class Stream(ctypes.Structure):
    """``ArrowArrayStream``."""


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", LAST_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]

POINTER_OF = ctypes.pythonapi.PyCapsule_GetPointer
POINTER_OF.restype = ctypes.c_void_p
POINTER_OF.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Reader:
    """Reads a stream to its end, and releases all that it got."""

    READERS: ClassVar[dict[bytes, str]] = {b"l": "integers", b"U": "texts", b"b": "flags"}

    def __init__(self, exporter: Any) -> None:
        """Ask for a stream and read it."""
        capsule = exporter.__arrow_c_stream__()
        at = POINTER_OF(capsule, b"arrow_array_stream")
        stream = Stream.from_address(at)
        schema, batch, end = Schema(), Array(), Array()
        assert stream.get_schema(stream, schema) == 0
        assert stream.get_next(stream, batch) == 0
        assert stream.get_next(stream, end) == 0
        assert not end.release
        assert (schema.format, batch.null_count, batch.n_buffers) == (b"+s", 0, 1)
        assert schema.n_children == batch.n_children
        self.n_rows: int = batch.length
        self.columns: dict[str, list[Any]] = {}
        for place in range(schema.n_children):
            field, column = schema.children[place][0], batch.children[place][0]
            assert column.length == self.n_rows
            self.columns[field.name.decode()] = self._values(field, column)
        schema.release(schema)
        batch.release(batch)
        assert not schema.release
        assert not batch.release
        stream.release(stream)
        assert not stream.release

    def _values(self, field: Schema, column: Array) -> list[Any]:
        # Without a validity buffer, every value is known.
        validity = column.buffers[0]
        known = _bits(validity, self.n_rows) if validity else [True] * self.n_rows
        assert column.null_count == known.count(False)
        assert field.flags & 2, "nullable"
        values = getattr(self, f"_{self.READERS[field.format]}")(column)
        return [value if is_known else None for value, is_known in zip(values, known, strict=True)]

    def _integers(self, column: Array) -> list[int]:
        assert column.n_buffers == 2
        return list((ctypes.c_int64 * self.n_rows).from_address(column.buffers[1]))

    def _flags(self, column: Array) -> list[bool]:
        assert column.n_buffers == 2
        return _bits(column.buffers[1], self.n_rows)

    def _texts(self, column: Array) -> list[str]:
        assert column.n_buffers == 3
        ends = list((ctypes.c_int64 * (self.n_rows + 1)).from_address(column.buffers[1]))
        content = ctypes.string_at(column.buffers[2], ends[-1])
        return [content[a:b].decode() for a, b in itertools.pairwise(ends)]


def _bits(address: int, n: int) -> list[bool]:
    content = ctypes.string_at(address, (n + 7) // 8)
    return [bool(content[idx // 8] >> idx % 8 & 1) for idx in range(n)]
