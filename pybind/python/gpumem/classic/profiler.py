"""Measures how calls and blocks change the memory of a device."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import math
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from gpumem import _gpumem
from gpumem._gpumem import DeviceError, MemorySnapshot, ProfileResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType, TracebackType

    from typing_extensions import ParamSpec, Self

    _P = ParamSpec("_P")

_T = TypeVar("_T")

_N_FRAMES = 5


class GPUMemoryProfiler:
    """Measures how calls and blocks change the memory of one device.

    ``device`` is a label (``"cuda:1"``, ``"sim:0"``, ``"host"``), the number of a
    GPU, or a torch device. The default is torch's current device if CUDA runs, else
    the simulated one if it is in use, else host memory. Each call determines it
    again.

    Nothing is reset, imported or initialised. A peak is exact if the allocator's own
    counter rose during the call; otherwise it lies between
    ``memory_peak.allocated_memory`` and ``memory_peak.max_memory_allocated``. An
    unknown level is None.
    """

    def __init__(
        self,
        device: object = None,
        track_tensors: bool = True,  # noqa: FBT001, FBT002 (the signature that people know)
        track_cpu_memory: bool = True,  # noqa: FBT001, FBT002 (likewise)
        collect_stack_traces: bool = False,  # noqa: FBT001, FBT002 (likewise)
    ) -> None:
        """Measure ``device``.

        ``track_tensors`` counts torch's tensors before and after each call, if torch is
        imported. This takes milliseconds for each 100,000 live objects.
        """
        self.track_tensors = track_tensors
        self.track_cpu_memory = track_cpu_memory
        self.collect_stack_traces = collect_stack_traces
        self.results: list[ProfileResult] = []
        self.snapshots: list[MemorySnapshot] = []
        """The snapshots of monitoring."""
        self._device = None if device is None else _label(device)
        self._idle_probes: list[_gpumem.Probe] = []
        self._monitor: _Monitor | None = None
        self._read_device, self._baseline = self._snapshot("baseline")
        if self._read_device == "host" and self._device is None:
            _gpumem._log(
                "no GPU is in use yet: GPUMemoryProfiler measures this process's host memory"
            )

    @property
    def device(self) -> str:
        """The label of the device that was read last, or ``none``."""
        return self._read_device or "none"

    def profile_function(
        self, func: Callable[..., object] | None = None, /, *args: object, **kwargs: object
    ) -> Any:  # noqa: ANN401 (a result, or a function like the one given)
        """Call ``func`` with its arguments and return the :class:`ProfileResult`.

        As a decorator, ``@profiler.profile_function`` with or without empty
        parentheses, it measures every later call, and each call returns the function's
        result. Exceptions propagate after the call is measured.
        """
        if func is None:
            return self._decorated
        if not args and not kwargs and _is_being_defined(func, sys._getframe(1)):
            return self._decorated(func)
        with self._measured(_name(func), sys._getframe(1), func) as result:
            func(*args, **kwargs)
        return result[0]

    @contextlib.contextmanager
    def profile_context(self, name: str = "context") -> Iterator[None]:
        """Measure a block, or each call of a decorated function, as a call of ``name``."""
        # Above this frame is contextlib's, above that the user's.
        caller = sys._getframe(2)
        with self._measured(name, caller):
            yield

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Take a snapshot every ``interval`` seconds until :meth:`stop_monitoring`."""
        if not 0 < interval < math.inf:
            message = f"interval must be a number of seconds above 0, not {interval!r}"
            raise ValueError(message)
        if self._monitor is None:
            self._monitor = _Monitor(self._watch, interval)

    def stop_monitoring(self) -> None:
        """Stop taking snapshots."""
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.stop()

    def get_summary(self) -> dict[str, Any]:
        """Return totals over all results, and for each function."""
        by_function: dict[str, list[ProfileResult]] = defaultdict(list)
        for result in self.results:
            by_function[result.function_name].append(result)
        self._read_device, now = self._snapshot("current")
        total_allocated = _total(result.memory_allocated for result in self.results)
        total_freed = _total(result.memory_freed for result in self.results)
        return {
            "device": self.device,
            "total_functions_profiled": len(by_function),
            "total_function_calls": len(self.results),
            "total_execution_time": _total(result.execution_time for result in self.results),
            "total_memory_allocated": total_allocated,
            "total_memory_freed": total_freed,
            "net_memory_change": total_allocated - total_freed,
            "peak_memory_usage": _highest(self.results),
            "current_memory_usage": now.allocated_memory,
            "baseline_memory_usage": self._baseline.allocated_memory,
            "memory_change_from_baseline": _difference(now, self._baseline),
            "function_summaries": {
                name: _function_summary(results) for name, results in by_function.items()
            },
            "monitoring_active": self._monitor is not None,
            "snapshots_collected": len(self.snapshots),
        }

    def clear_results(self) -> None:
        """Delete results and snapshots, and use the current level as the new baseline."""
        self.results.clear()
        self.snapshots.clear()
        self._read_device, self._baseline = self._snapshot("new_baseline")

    def __enter__(self) -> Self:
        """Return the profiler."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop monitoring."""
        self.stop_monitoring()

    def __repr__(self) -> str:
        """Return the device and the number of results."""
        return f"<GPUMemoryProfiler of {self.device}: {len(self.results)} results>"

    def _decorated(self, func: Callable[_P, _T]) -> Callable[_P, _T]:
        @functools.wraps(func)
        def profiled(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with self._measured(_name(func), sys._getframe(1), func):
                return func(*args, **kwargs)

        return profiled

    @contextlib.contextmanager
    def _measured(
        self, name: str, caller: FrameType, func: Callable[..., object] | None = None
    ) -> Iterator[list[ProfileResult]]:
        """Measure a block; the yielded list receives its result at the end."""
        measured: list[ProfileResult] = []
        stack = _stack(caller, func) if self.collect_stack_traces else None
        del caller
        # A nested call has its own probe.
        probe = self._idle_probes.pop() if self._idle_probes else _gpumem.Probe()
        n_tensors = self._n_tensors()
        self._read_device, before = probe.begin(
            self._device, _current_device(), self.track_cpu_memory
        )
        start = time.perf_counter()
        suffix = ""
        try:
            yield measured
            _synchronize(self._read_device)
        except BaseException as error:
            suffix = "_error"
            if stack is not None:
                stack += _raised(error)
            raise
        finally:
            seconds = time.perf_counter() - start
            after, peak = probe.end(self.track_cpu_memory)
            self._idle_probes.append(probe)
            for snapshot, moment in ((before, "before"), (after, "after"), (peak, "peak")):
                is_at_start = moment == "before"
                snapshot.operation = f"{moment}_{name}{'' if is_at_start else suffix}"
                snapshot.stack_trace = stack
            change = _difference(after, before)
            n_more = self._n_tensors() - n_tensors
            measured.append(
                ProfileResult(
                    function_name=name,
                    execution_time=seconds,
                    memory_before=before,
                    memory_after=after,
                    memory_peak=peak,
                    memory_allocated=None if change is None else max(0, change),
                    memory_freed=None if change is None else max(0, -change),
                    tensors_created=max(0, n_more),
                    tensors_deleted=max(0, -n_more),
                )
            )
            self.results.extend(measured)

    def _watch(self) -> None:
        self._read_device, snapshot = self._snapshot("monitor")
        self.snapshots.append(snapshot)

    def _snapshot(self, operation: str) -> tuple[str | None, MemorySnapshot]:
        label, snapshot = _gpumem.classic_snapshot(
            self._device, _current_device(), self.track_cpu_memory
        )
        snapshot.operation = operation
        return label, snapshot

    def _n_tensors(self) -> int:
        return _count_tensors() if self.track_tensors else 0


class _Monitor:
    """A thread that calls a function repeatedly."""

    def __init__(self, watch: Callable[[], None], interval: float) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(watch, interval), name="gpumem-monitor", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, watch: Callable[[], None], interval: float) -> None:
        watch()
        while not self._is_over.wait(interval):
            watch()


def _label(device: object) -> str:
    """Return the label of a device, given as a torch device, a label or a number."""
    if isinstance(device, int):
        gpus = [label for label in _gpumem.device_labels() if label != "host"]
        if device not in range(len(gpus)):
            raise _absent(f"number {device}")
        return gpus[device]
    label = {"cpu": "host", "cuda": _current_device() or "cuda:0"}.get(str(device), str(device))
    if label not in _gpumem.device_labels():
        raise _absent(repr(label))
    return label


def _absent(device: str) -> DeviceError:
    labels = ", ".join(_gpumem.device_labels())
    return DeviceError(
        f"no device {device} is read now: there are {labels}\n"
        "hint: a GPU is there once its framework runs, as after torch.cuda.init()"
    )


def _current_device() -> str | None:
    """Return torch's current device if CUDA already runs; nothing is started."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return f"cuda:{cuda.current_device()}" if cuda and cuda.is_initialized() else None
    except Exception:
        return None


def _synchronize(device: str | None) -> None:
    """Wait for the call's GPU kernels, to include them in its time."""
    if device is not None and device == _current_device():
        sys.modules["torch"].cuda.synchronize()


def _count_tensors() -> int:
    """Return the number of live torch tensors, without running any of their code."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None:
        return 0
    types = Counter(map(type, gc.get_objects()))
    return sum(n for kind, n in types.items() if tensor in type.mro(kind))


def _name(func: Callable[..., object]) -> str:
    return str(getattr(func, "__name__", type(func).__name__))


def _is_being_defined(func: Callable[..., object], caller: FrameType) -> bool:
    """Distinguish ``@profile_function`` above a ``def`` from ``profile_function(name)``.

    A decorator is called while its ``def`` is on the caller's line, and before the
    function's name is bound.
    """
    code = getattr(inspect.unwrap(func), "__code__", None)
    if code is None or code.co_name == "<lambda>" or code.co_filename != caller.f_code.co_filename:
        return False
    lines = [line for *_, line in code.co_lines() if line is not None]
    if not code.co_firstlineno <= caller.f_lineno <= max(lines, default=0):
        return False
    bound = caller.f_locals.get(code.co_name, caller.f_globals.get(code.co_name))
    return bound is not func


def _stack(caller: FrameType, func: Callable[..., object] | None) -> str:
    """Return the innermost frames of a call, and the function called."""
    frames = traceback.format_stack(caller, _N_FRAMES)
    code = getattr(inspect.unwrap(func), "__code__", None) if func is not None else None
    if code is not None:
        place = f'File "{code.co_filename}", line {code.co_firstlineno}, in {code.co_name}'
        frames.append(f"  {place}\n")
    return "".join(frames)


def _raised(error: BaseException) -> str:
    """Return the frames below the profiler in which an exception was raised."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in {__file__, contextlib.__file__}
    ]
    return "".join(traceback.format_list(frames[-_N_FRAMES:]))


def _difference(now: MemorySnapshot, then: MemorySnapshot) -> int | None:
    levels = now.allocated_memory, then.allocated_memory
    return None if None in levels else levels[0] - levels[1]


def _total(figures: Iterable[float | None]) -> float:
    return sum(figure for figure in figures if figure is not None)


def _highest(results: list[ProfileResult]) -> float | None:
    peaks = (result.peak_memory_usage() for result in results)
    return max((peak for peak in peaks if peak is not None), default=None)


def _function_summary(results: list[ProfileResult]) -> dict[str, Any]:
    seconds = _total(result.execution_time for result in results)
    allocated = _total(result.memory_allocated for result in results)
    return {
        "call_count": len(results),
        "total_time": seconds,
        "avg_time": seconds / len(results),
        "total_memory_allocated": allocated,
        "avg_memory_allocated": allocated / len(results),
        "peak_memory": _highest(results),
    }
