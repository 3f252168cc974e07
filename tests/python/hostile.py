"""Objects of C that tell the collector wrong things of themselves, for a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from gpumem import sim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Visit = Callable[[int | None], int]

TRAVERSE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
VISIT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TP_TRAVERSE = 71
HAVE_GC = 1 << 14


class Slot(ctypes.Structure):
    """`PyType_Slot`."""

    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class Spec(ctypes.Structure):
    """`PyType_Spec`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    )


class NoType(ctypes.Structure):
    """An object that was freed, as debug builds leave it."""

    _fields_ = (("count", ctypes.c_ssize_t), ("type", ctypes.c_void_p))


KEPT: list[object] = []


@contextlib.contextmanager
def unbelieved() -> Iterator[None]:
    """Let no collection believe these objects, nor the interpreter's last one.

    That may never end: the process ends at once.
    """
    gc.disable()
    status = 1
    try:
        yield
        status = 0
    finally:
        if status:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)


def lying(body: Callable[[Visit], int]) -> Any:
    """Return an object whose traversal is `body`."""

    def traverse(_: int, visit: int, argument: int) -> int:
        called = VISIT(visit)
        return body(lambda address: called(address, argument)) or 0

    KEPT.append(TRAVERSE(traverse))
    function = ctypes.cast(KEPT[-1], ctypes.c_void_p).value
    slots = (Slot * 2)(Slot(TP_TRAVERSE, function), Slot(0, None))
    pointer = ctypes.cast(slots, ctypes.POINTER(Slot))
    spec = Spec(b"wrong.Wrong", object.__basicsize__, 0, HAVE_GC, pointer)
    KEPT.extend([slots, spec])
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype = ctypes.py_object
    return make(ctypes.byref(spec))()


class Lies:
    """What objects can tell instead of the truth, which is a tensor."""

    def __init__(self) -> None:
        self.tensor = sim.tensor(777)
        self.alive = [object(), {"k": self.tensor}]
        self.freed = NoType(1, None)
        self.addresses: dict[str, list[int | None]] = {
            "null": [0, None],
            "misaligned": [id(self.tensor) + 1, id(self.tensor) + 4],
            "freed": [ctypes.addressof(self.freed)],
            "itself": [],
        }

    def liar(self, lie: str) -> Any:
        """Return an object whose traversal visits wrong addresses, and then the tensor."""

        def body(visit: Visit) -> int:
            for address in self.addresses[lie]:
                if visit(address):
                    return 1
            return visit(id(self.tensor))

        made = lying(body)
        self.addresses["itself"].append(id(made))
        return made

    def endless(self) -> Any:
        """Return an object whose traversal visits the same object forever."""

        def body(visit: Visit) -> int:
            while not visit(id(self.alive)):
                pass
            return 1

        return lying(body)
