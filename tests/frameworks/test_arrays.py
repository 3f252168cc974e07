"""What the objects of JAX and TensorFlow hold, and of CuPy and Numba by faithful stand-ins."""

from __future__ import annotations

import sys
import textwrap
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from tests.support.programs import output_of

from .live import look

if TYPE_CHECKING:
    from pathlib import Path


def in_fresh_python(script: str) -> None:
    """Run a script with both frameworks apart from torch: each takes seconds to import."""
    preamble = "from tests.frameworks.live import look\n"
    output_of("-c", preamble + textwrap.dedent(script))


def test_numpy() -> None:
    array = np.ones((1000, 10))
    assert look(array=array, again=[array]).n_bytes == {"host": 80_000}
    assert look(array=array).by_category() == {"array": 80_000}
    # A part keeps all of it, once.
    assert look(part=array[3:5].T, other=array[:2]).n_bytes == {"host": 80_000}
    assert look(wide=np.broadcast_to(array[0], (1000, 10))).n_bytes == {"host": 80_000}
    assert look(sub=array.view(np.matrix)).n_bytes == {"host": 80_000}
    masked = np.ma.masked_array(array, mask=np.zeros((1000, 10), dtype=bool))
    assert look(masked=masked).n_bytes == {"host": 90_000}
    assert look(scalars=[np.float64(1), np.ones(()), np.ones(8)]).n_bytes == {}


class Hostile(np.ndarray[Any, Any]):
    """An array whose class has its own idea of everything."""

    def _refuse(self) -> Any:
        raise AssertionError

    nbytes = base = dtype = shape = data = property(_refuse)
    __array_interface__ = __sizeof__ = property(_refuse)


def test_none_of_an_arrays_own_code_runs() -> None:
    assert look(it=np.ones(1000).view(Hostile)).n_bytes == {"host": 8000}


def test_numpy_shows_what_others_have(tmp_path: Path) -> None:
    text, changeable = bytes(100_000), bytearray(100_000)
    assert look(it=np.frombuffer(text, "u1")).n_bytes == {"host": sys.getsizeof(text)}
    assert look(it=np.frombuffer(changeable, "u1")).n_bytes == {"host": sys.getsizeof(changeable)}
    tensor = torch.ones(1000, 10)
    assert look(tensor=tensor, it=tensor.numpy()).n_bytes == {"host": 40_000}
    assert look(it=tensor.numpy()).n_bytes == {"host": 40_000}
    array = np.ones((1000, 10))
    assert look(array=array, it=torch.from_numpy(array)).n_bytes == {"host": 80_000}
    # What lies in a file is no memory of the process.
    np.save(tmp_path / "array.npy", array)
    assert look(it=np.load(tmp_path / "array.npy", mmap_mode="r")).n_bytes == {}


def test_an_array_of_objects_leads_to_them() -> None:
    tensor = torch.ones(1000)
    objects = np.array([None, tensor, 1, [tensor], "words"], dtype=object)
    found = look(objects=objects.reshape(5, 1))
    assert found.n_bytes == {"host": 4000}
    assert {".base", "[1]", "[3]"} <= found.steps
    assert look(objects=np.empty(10_000, dtype=object)).n_bytes == {"host": 80_000}


def test_kept_arrays_are_listed_by_name() -> None:
    in_fresh_python("""
        import gpumem
        from gpumem import _gpumem
        from tests.support.shell import open_shell

        _gpumem._set_look_patience(60_000)
        shell = open_shell()
        shell.run_line_magic("gpumem", "on")
        shell.run_cell("import numpy as np\\nkept = []")
        for _ in range(9):
            shell.run_cell("kept.append(np.ones(2 << 20))", store_history=True)
        (growth,) = gpumem.report().findings
        (holder,) = growth.holders
        assert (holder.name, holder.what) == ("kept", "list of 9 arrays")
        assert holder.grown_bytes == 9 * (16 << 20)
        assert abs(growth.bytes_per_run / (16 << 20) - 1) < 0.02
    """)


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.ones(10_000), "b": np.arange(10_000)})
    frame["c"] = pandas.Series(["w" * 5000]).repeat(10_000).to_numpy(dtype=object)
    word = sys.getsizeof("w" * 5000)
    assert look(frame=frame).n_bytes == {"host": 3 * 80_000 + word}
    assert look(frame=frame, column=frame["a"], rows=frame.index).n_bytes == {
        "host": 3 * 80_000 + word
    }
    assert look(column=frame["a"].copy()).n_bytes == {"host": 80_000}
    assert look(index=pandas.Index(np.arange(10_000.0))).n_bytes == {"host": 80_000}
    assert look(kinds=pandas.Categorical(["a", "b"] * 5000)).n_bytes == {"host": 10_000}


def test_jax() -> None:
    in_fresh_python("""
        import os

        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        array = jax.numpy.ones((1000, 10)).block_until_ready()
        assert look(array=array, again=[array]).n_bytes == {"host": 40_000}
        assert look(half=jax.numpy.ones(1000, jax.numpy.bfloat16)).n_bytes == {"host": 2000}
        mesh = Mesh(np.array(jax.devices()), ("x",))
        parts = jax.device_put(np.ones((1000, 10)), NamedSharding(mesh, PartitionSpec("x")))
        assert look(parts=parts).n_bytes == {"host": 40_000}
        array.delete()
        assert look(array=array).n_bytes == {}

        @jax.jit
        def slow(n):
            return jax.lax.fori_loop(0, 10, lambda _, it: it @ it * 1e-3, n)

        pending = slow(jax.numpy.ones((500, 500)))
        assert look(pending=pending).n_bytes == {"host": 1_000_000}
    """)


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed here")
def test_tensorflow() -> None:
    in_fresh_python("""
        import tensorflow as tf

        tensor = tf.ones((1000, 10))
        assert look(tensor=tensor, again=[tensor]).n_bytes == {"host": 40_000}
        same = tf.reshape(tensor, (10, 1000))
        assert look(tensor=tensor, same=same, alias=tf.identity(tensor)).n_bytes == {"host": 40_000}
        assert look(tensor=tensor, other=tensor + 1).n_bytes == {"host": 80_000}
        # Asking one of another type for its address would end the process.
        for dtype in ("qint8", "quint16", "bfloat16", "float16", "uint64"):
            kind = tf.as_dtype(dtype)
            zeros = tf.zeros((8, kind.size) if kind.size > 1 else 8, tf.uint8)
            assert look(it=tf.bitcast(zeros, kind)).n_bytes == {"host": 8 * kind.size}
        for value in (True, 1j):
            assert look(it=tf.constant([value] * 8)).n_bytes
        variable = tf.Variable(tensor)
        assert look(variable=variable).by_category() == {"parameter": 40_000}
        with tf.GradientTape() as tape:
            result = variable * variable
        assert look(result=result).n_bytes == {"host": 40_000}
        assert look(text=tf.constant("words")).n_bytes == {}
    """)


def test_cupy() -> None:
    class PooledMemory:
        __slots__ = ("__weakref__", "device_id", "ptr", "size")

    class MemoryPointer:
        __slots__ = ("mem",)

    class ndarray:  # noqa: N801 (CuPy's name)
        __slots__ = ("data", "dtype", "shape")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    ndarray.__module__ = "cupy"
    ndarray.__qualname__ = "ndarray"
    memory: Any = PooledMemory()
    memory.ptr, memory.size, memory.device_id = 0x7F0000000000, 1 << 20, 1
    arrays = []
    for _ in range(2):
        pointer: Any = MemoryPointer()
        pointer.mem = memory
        array: Any = ndarray()
        array.data, array.shape, array.dtype = pointer, (512, 512), np.dtype("float32")
        arrays.append(array)
    assert look(arrays=arrays).n_bytes == {"cuda:1": 1 << 20}


def test_numba() -> None:
    class Device:
        def __init__(self) -> None:
            self.id = 1

    class Context:
        def __init__(self) -> None:
            self.device = Device()

    class AutoFreePointer:
        def __init__(self, size: int) -> None:
            self.context = Context()
            self.size = size
            self._owner = None

    class OwnedPointer:
        def __init__(self, memory: AutoFreePointer) -> None:
            self._mem = memory
            self._view = memory

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    class DeviceNDArrayBase:
        def __init__(self, memory: AutoFreePointer) -> None:
            self.gpu_data = OwnedPointer(memory)
            self.shape = (512, 512)
            self.dtype = np.dtype("float32")

    class DeviceNDArray(DeviceNDArrayBase):
        pass

    DeviceNDArrayBase.__module__ = "numba.cuda.cudadrv.devicearray"
    DeviceNDArrayBase.__qualname__ = "DeviceNDArrayBase"
    memory = AutoFreePointer(1 << 20)
    arrays = [DeviceNDArray(memory), DeviceNDArray(memory)]
    assert look(arrays=arrays).n_bytes == {"cuda:1": 1 << 20}
