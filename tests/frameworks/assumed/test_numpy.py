"""What gpumem assumes of NumPy, beyond its documentation. One test is one assumption."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from typing import Any

import pytest

np: Any = pytest.importorskip("numpy")

READ_BY_C = (types.GetSetDescriptorType, types.MemberDescriptorType)
OWNS_DATA = 4


class Fields(ctypes.Structure):
    """`Fields` of `objects/adapters/numpy.rs`."""

    _fields_ = (
        ("count", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("n_dimensions", ctypes.c_int),
        ("dimensions", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    )


def fields(array: Any) -> Fields:
    return Fields.from_address(id(array))


def test_the_fields_of_an_array_lie_as_in_numpy_1() -> None:
    """`objects/adapters/numpy.rs` reads them from memory."""
    array = np.zeros((3, 5), np.float32)
    found = fields(array)
    assert found.data == array.ctypes.data
    assert found.n_dimensions == array.ndim
    assert tuple(found.dimensions[:2]) == array.shape
    assert tuple(found.strides[:2]) == array.strides
    assert found.base is None
    assert found.dtype == id(array.dtype)
    assert fields(array[1:]).base == id(array)


def test_a_flag_says_that_an_array_owns_its_data() -> None:
    """`objects/adapters/numpy.rs` counts the bytes of such an array alone."""
    array = np.zeros(3)
    assert fields(array).flags & OWNS_DATA
    assert not fields(array[1:]).flags & OWNS_DATA


def test_c_reads_these_attributes_of_an_array() -> None:
    """`objects/adapters/numpy.rs` compares them with the fields of the first array."""
    names = ("nbytes", "ndim", "base", "dtype")
    assert [it for it in names if not isinstance(vars(np.ndarray)[it], READ_BY_C)] == []


def test_c_reads_kind_and_class_of_a_dtype() -> None:
    """`objects/adapters/arrays.rs` names a dtype by its scalar's class: `name` is Python code."""
    own = {name: vars(np.dtype)[name] for name in ("char", "type")}
    assert [name for name, it in own.items() if not isinstance(it, READ_BY_C)] == []
    assert np.dtype(np.float32).type.__qualname__ == "float32"
    assert np.dtype(object).char == "O"


def test_an_array_is_known_by_this_name() -> None:
    """`objects/adapters/numpy.rs` claims the class by it, and finds it in this module."""
    assert (np.ndarray.__module__, np.ndarray.__qualname__) == ("numpy", "ndarray")
    assert sys.modules["numpy"].ndarray is np.ndarray


def test_a_view_of_a_view_keeps_the_owner_of_the_bytes() -> None:
    """`objects/adapters/numpy.rs` follows `base` to who has them."""
    array = np.zeros(30)
    assert array[1:][1:].reshape(2, 14).base is array


def test_an_array_of_objects_does_not_tell_the_collector() -> None:
    """`objects/adapters/numpy.rs` reads the references from the array's block itself."""
    kept = [3]
    array = np.empty((2, 2), object)
    array[1, 0] = kept
    assert kept not in gc.get_referents(array)
    block = (ctypes.c_void_p * 4).from_address(array.ctypes.data)
    assert block[2] == id(kept)


def test_a_transposed_array_of_objects_is_a_view() -> None:
    """`objects/adapters/numpy.rs` takes the objects of an owner to lie side by side."""
    array = np.empty((2, 3), object)
    assert not fields(array.T).flags & OWNS_DATA
    copy = array.T.copy(order="F")
    assert fields(copy).flags & OWNS_DATA
    assert copy.flags.f_contiguous


def test_memory_of_c_code_is_behind_a_capsule() -> None:
    """`objects/adapters/numpy.rs` counts what shows a capsule, which does not tell its size."""
    shown = np.from_dlpack(np.zeros(3))
    assert type(shown.base).__name__ == "PyCapsule"
    assert not fields(shown).flags & OWNS_DATA
