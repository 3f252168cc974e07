"""Frameworks on CUDA, each in the shape in which it gives its figures.

The stand-ins refuse whatever would start the framework that they stand for.
"""

from __future__ import annotations

import json
import sys
from importlib.util import LazyLoader, module_from_spec, spec_from_file_location
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.test_sources import FakeTorch
from tests.support.reports import last_row, state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Shell

MIB = 1 << 20
UUID = "3f1a8c55-0000-4b7e-9d21-000000000000"


def refuse(*_: object, **__: object) -> NoReturn:
    message = "this would start the framework"
    raise AssertionError(message)


class Fake:
    """A framework that holds bytes on one device; `started` and `failure` are the test's to set."""

    def __init__(self) -> None:
        self.started = False
        self.failure: BaseException | None = None
        self.allocated = 0
        self.peak = 0

    def allocate(self, n_bytes: int) -> None:
        self.allocated += n_bytes
        self.peak = max(self.peak, self.allocated)

    def reset_peak(self, *_: object) -> None:
        assert self.started
        self.peak = self.allocated

    def check_started(self) -> None:
        """Fail if a call would start the framework."""
        assert self.started, "this would start the framework"
        if self.failure is not None:
            raise self.failure


def module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(members)
    return made


def malloc_managed(n_bytes: int) -> NoReturn:
    refuse(n_bytes)


class Pool:
    """A pool of cupy's: it does not show what it allocates with, but it refers to it."""

    def __init__(self, allocator: object) -> None:
        self.pools = {1: (allocator,)}
        self.used = 0

    def malloc(self, n_bytes: int) -> None:
        self.used += n_bytes

    def used_bytes(self) -> int:
        return self.used

    def total_bytes(self) -> int:
        return self.used + MIB

    def get_limit(self) -> int:
        return 0


Pool.__module__ = "cupy.cuda.memory"


class Cupy(Fake):
    """`cupy` on the second of two devices."""

    source, device = "cupy", "cuda:1"

    def modules(self) -> dict[str, ModuleType]:
        def context() -> int:
            if not self.started:
                message = "CUDA_ERROR_NOT_INITIALIZED: initialization error"
                raise RuntimeError(message)
            return 0x5EED

        def figure(read: Callable[[], int]) -> Callable[[], int]:
            def answer() -> int:
                self.check_started()
                return read()

            return answer

        pool = SimpleNamespace(
            used_bytes=figure(lambda: self.allocated),
            total_bytes=figure(lambda: self.allocated + MIB),
            get_limit=figure(lambda: 0),
        )

        def properties(ordinal: int) -> dict[str, Any]:
            self.check_started()
            return {"name": b"Tesla T4", "uuid": bytes(15) + bytes([ordinal])}

        self.default_pool = pool
        self.allocator: object = None
        cuda = SimpleNamespace(
            malloc_managed=malloc_managed,
            get_allocator=lambda: self.allocator or SimpleNamespace(__self__=pool),
            driver=SimpleNamespace(ctxGetCurrent=context),
            runtime=SimpleNamespace(
                getDevice=figure(lambda: 1), getDeviceProperties=properties, getDeviceCount=refuse
            ),
            Device=refuse,
        )
        return {"cupy": module("cupy", cuda=cuda, get_default_memory_pool=lambda: pool)}


class Jax(Fake):
    """`jax` with a CPU and a GPU backend."""

    source, device = "jax", "cuda:0"

    def modules(self) -> dict[str, ModuleType]:
        def memory_stats() -> dict[str, int]:
            self.check_started()
            return {
                "bytes_in_use": self.allocated,
                "peak_bytes_in_use": self.peak,
                "bytes_limit": 12 << 30,
                "pool_bytes": 12 << 30,
            }

        def clients() -> dict[str, Any]:
            def device(platform: str) -> SimpleNamespace:
                return SimpleNamespace(
                    platform=platform,
                    device_kind="Tesla T4",
                    id=0,
                    local_hardware_id=0,
                    memory_stats=memory_stats,
                )

            names = ["cpu", "gpu"] if self.started else []
            return {
                name: SimpleNamespace(local_devices=lambda name=name: [device(name)])
                for name in names
            }

        class Bridge(ModuleType):
            _backends = property(lambda _: clients())

        bridge = Bridge("jax._src.xla_bridge")
        vars(bridge).update(backends=refuse, get_backend=refuse, backends_are_initialized=refuse)
        jax = module("jax", devices=refuse, local_devices=refuse, live_arrays=refuse)
        return {"jax": jax, "jax._src.xla_bridge": bridge}


class Tensorflow(Fake):
    """`tensorflow` with the third GPU visible, cut into two logical devices."""

    source, device = "tensorflow", "cuda:2"
    limit: float | None = None

    def modules(self) -> dict[str, ModuleType]:
        def memory(name: str) -> dict[str, int]:
            self.check_started()
            used = {"GPU:0": self.allocated, "GPU:1": 0}
            return {"current": used[name], "peak": used[name]}

        def visible(kind: str) -> list[SimpleNamespace]:
            self.check_started()
            assert kind == "GPU"
            return [SimpleNamespace(name="/physical_device:GPU:2")]

        fake = self

        class Context:
            @property
            def _context_handle(self) -> object:
                return object() if fake.started else None

            get_memory_info = staticmethod(memory)
            get_visible_devices = staticmethod(visible)
            reset_memory_stats = staticmethod(fake.reset_peak)

            def get_device_details(self, _device: object) -> dict[str, str]:
                return {"device_name": "Tesla T4"}

            def get_logical_device_configuration(self, _device: object) -> list[object]:
                return [SimpleNamespace(memory_limit=fake.limit)] * 2

        context = module("tensorflow.python.eager.context", _context=Context(), context=refuse)
        tensorflow = module("tensorflow", config=None)
        return {"tensorflow": tensorflow, "tensorflow.python.eager.context": context}


class Numba(Fake):
    """`numba.cuda` with a context on its only device."""

    source, device = "numba", "cuda:0"
    managed = 0

    def modules(self) -> dict[str, ModuleType]:
        fake = self

        class Manager:
            deallocations = SimpleNamespace(_size=3 * MIB)

            @property
            def allocations(self) -> dict[int, Any]:
                fake.check_started()
                kinds = {
                    "AutoFreePointer": fake.allocated,
                    "ManagedMemory": fake.managed,
                    "MappedMemory": 77,
                }
                return {
                    size: type(kind, (), {"size": size})() for kind, size in kinds.items() if size
                }

        class Device:
            uuid = f"GPU-{UUID}"
            name = b"Tesla T4"

            @property
            def primary_context(self) -> object:
                return SimpleNamespace(memory_manager=Manager()) if fake.started else None

        class Gpus:
            def __init__(self) -> None:
                self.lst = [SimpleNamespace(_device=Device())]

        devices = module(
            "numba.cuda.cudadrv.devices", gpus=Gpus(), get_context=refuse, current_context=refuse
        )
        return {"numba": module("numba"), "numba.cuda.cudadrv.devices": devices}


def installed(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, stand_in in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    return fake


def played(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    installed(fake, monkeypatch).started = True
    return fake


@pytest.fixture(params=[FakeTorch, Cupy, Jax, Tensorflow, Numba])
def framework(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return installed(request.param(), monkeypatch)


@pytest.mark.parametrize("name", ["torch", "cupy", "jax", "tensorflow", "numba"])
def test_a_lazy_module_is_not_loaded_by_us(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text("cuda = None")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    lazy = module_from_spec(spec)
    LazyLoader(spec.loader).exec_module(lazy)
    monkeypatch.setitem(sys.modules, name, lazy)
    for cell in ("%%gpumem\n1", "%gpumem", "%gpumem status", "%gpumem why", "%gpumem release all"):
        shell.run(cell)
    # Loaded, it is a module like others.
    assert type(lazy) is not ModuleType


@pytest.mark.parametrize("source", ["torch", "cupy", "jax", "tensorflow", "numba"])
def test_what_nobody_imported_stays_so(source: str) -> None:
    assert source not in sys.modules
    assert state(source) == (False, "not imported")
    assert source not in sys.modules


def test_a_framework_that_does_not_run_is_not_started(shell: Any, framework: Any) -> None:
    used, reason = state(framework.source)
    assert not used
    assert reason.startswith("imported, but ")
    shell.run("%%gpumem\n1 + 1")
    assert framework.device not in {row["device"] for row in gpumem.report().runs}


def test_levels_reach_the_report(shell: Any, framework: Any) -> None:
    framework.started = True
    framework.allocate(8 * MIB)
    used, reason = state(framework.source)
    assert used
    assert reason.startswith(f"reads {framework.device}")
    shell.user_ns["framework"] = framework
    shell.run("%%gpumem\nframework.allocate(16 << 20)")
    row = last_row(framework.device)
    assert (row["allocated_before_bytes"], row["allocated_after_bytes"]) == (8 * MIB, 24 * MIB)
    assert row["metric"] == "allocated"
    devices = json.loads(gpumem.recording()._report_json())["devices"]
    assert {it["label"]: it["name"] for it in devices}[framework.device] == "Tesla T4"


def test_a_framework_that_starts_in_a_cell_is_read_at_its_end(shell: Any, framework: Any) -> None:
    shell.user_ns["framework"] = framework
    shell.run("%%gpumem\nframework.started = True\nframework.allocate(16 << 20)")
    row = last_row(framework.device)
    assert (row["allocated_before_bytes"], row["allocated_after_bytes"]) == (None, 16 * MIB)


@pytest.mark.parametrize(
    "failure", [RuntimeError("an illegal memory access"), SystemExit(1), KeyboardInterrupt()]
)
def test_a_failure_inside_a_run_is_unknown_and_passes(
    shell: Any, framework: Any, failure: BaseException
) -> None:
    framework.started = True
    framework.allocate(8 * MIB)
    shell.user_ns.update(framework=framework, failure=failure)
    outcome = shell.run("%%gpumem\nframework.failure = failure\n1 + 1")
    assert outcome.result == "2"
    row = last_row(framework.device)
    assert (row["allocated_before_bytes"], row["allocated_after_bytes"]) == (8 * MIB, None)
    framework.failure = None
    shell.run("%%gpumem\npass")
    assert last_row(framework.device)["allocated_after_bytes"] == 8 * MIB


def test_jax_is_judged_on_what_is_in_use_under_its_limit(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.user_ns["jax"] = played(Jax(), monkeypatch)
    shell.run("%%gpumem\njax.allocate(48 << 20)\njax.allocate(-(40 << 20))")
    row = last_row("cuda:0")
    assert (row["kept_bytes"], row["peak_bytes"], row["peak_exact"]) == (8 * MIB, 48 * MIB, True)
    assert (row["reserved_after_bytes"], row["capacity_bytes"]) == (12 << 30, 12 << 30)


def test_a_jax_that_hides_its_backends_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", module("jax", devices=refuse))
    reason = "this version of JAX does not tell whether it is initialised"
    assert state("jax") == (False, reason)


def test_frameworks_on_one_device_are_added_up(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for fake in (Jax(), Numba()):
        played(fake, monkeypatch).allocate(8 * MIB)
    shell.run("%%gpumem\npass")
    assert _gpumem.device_labels().count("cuda:0") == 1
    assert last_row("cuda:0")["allocated_after_bytes"] == 16 * MIB


def test_a_pool_that_the_user_set_counts_with_the_default_one(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy, pool = played(Cupy(), monkeypatch), Pool(refuse)
    cupy.allocate(8 * MIB)
    cupy.allocator = pool.malloc
    shell.user_ns["pool"] = pool
    shell.run("%%gpumem\npool.malloc(16 << 20)")
    assert last_row("cuda:1")["allocated_after_bytes"] == 24 * MIB
    assert "managed" not in _gpumem.device_labels()


def test_a_pool_of_managed_memory_is_a_device_of_its_own(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy, pool = played(Cupy(), monkeypatch), Pool(malloc_managed)
    cupy.allocate(8 * MIB)
    cupy.allocator = pool.malloc
    shell.user_ns["pool"] = pool
    shell.run("%%gpumem\npool.malloc(16 << 20)")
    assert last_row("cuda:1")["kept_bytes"] == 0
    row = last_row("managed")
    assert (row["kept_bytes"], row["reserved_after_bytes"]) == (16 * MIB, 17 * MIB)


def test_numba_s_managed_memory_is_no_device_s(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numba = played(Numba(), monkeypatch)
    numba.allocate(8 * MIB)
    numba.managed = 32 * MIB
    shell.user_ns["numba"] = numba
    shell.run("%%gpumem\nnumba.managed = 0")
    assert last_row("cuda:0")["allocated_after_bytes"] == 8 * MIB
    assert last_row("managed")["kept_bytes"] == -32 * MIB


def test_a_limit_of_tensorflow_s_is_a_capacity(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow = Tensorflow()
    tensorflow.limit = 2048.0
    played(tensorflow, monkeypatch).allocate(1 << 30)
    shell.run("%%gpumem\npass")
    assert last_row("cuda:2")["capacity_bytes"] == 4 << 30
    device = next(it for it in report()["devices"] if it["label"] == "cuda:2")
    assert (device["limited_by"], device["free_bytes"]) == ("tensorflow", 3 << 30)


def report() -> Any:
    return json.loads(gpumem.recording()._report_json())


class Paged:
    """bitsandbytes: states that look like the CPU's to torch, in a list that only grows."""

    def __init__(self) -> None:
        self.is_unseen = False
        self.tensors: list[Any] = []
        paged = self

        class Tensor:
            @property
            def nbytes(self) -> int:
                assert paged.is_unseen, "a mode of the user's would run"
                return 8 * MIB

        class Manager:
            _instance: Any = None
            get_instance = staticmethod(refuse)

        class DisableTorchFunction:
            def __enter__(self) -> None:
                paged.is_unseen = True

            def __exit__(self, *_: object) -> None:
                paged.is_unseen = False

        self.make = Tensor
        self.manager = Manager
        functional = module("bitsandbytes.functional", GlobalPageManager=Manager)
        torch = module("torch", _C=SimpleNamespace(DisableTorchFunction=DisableTorchFunction))
        torch.cuda = SimpleNamespace(is_initialized=lambda: False)  # type: ignore[attr-defined]
        self.modules = {"torch": torch, "bitsandbytes.functional": functional}


def test_paged_optimizer_states_are_managed_memory(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged = Paged()
    for name, stand_in in paged.modules.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    assert state("bitsandbytes") == (False, "imported, but no optimizer has paged states")
    paged.manager._instance = SimpleNamespace(paged_tensors=paged.tensors)
    shell.user_ns["paged"] = paged
    for n_before in (0, 2):
        shell.run("%%gpumem\npaged.tensors += [paged.make(), paged.make()]")
        row = last_row("managed")
        assert (row["before_bytes"], row["kept_bytes"]) == (n_before * 8 * MIB, 16 * MIB)
    assert not paged.is_unseen
