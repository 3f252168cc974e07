"""Child processes of a recorded session, which record themselves: when they begin, and their names.

Nothing here may fail or print in a child of the user's.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys
from functools import cache
from typing import Any

from gpumem import _gpumem

# The variable of the environment that says to children that are not forked where they record
# themselves.
VARIABLE = "GPUMEM_PROCESSES"
# Variables of the environment that identify a rank or a job.
PLACES = {
    "RANK": "rank",
    "LOCAL_RANK": "local_rank",
    "WORLD_SIZE": "world_size",
    "SLURM_JOB_ID": "slurm_job",
    "SLURM_STEP_ID": "slurm_step",
    "SLURMD_NODENAME": "slurm_node",
    "SLURM_PROCID": "slurm_rank",
    "SLURM_NTASKS": "slurm_ranks",
    "TORCHELASTIC_RUN_ID": "torchelastic_run",
}
# The variable that identifies a worker of a cluster, in place of all these.
FACTS: list[tuple[str, str]] = []
# In the command line of processes that multiprocessing or loky starts.
STARTED_BY = ("--multiprocessing-fork", "multiprocessing.forkserver", "loky.backend.popen")


class _Anchor:
    """The weakly held target of a callback in multiprocessing's registry."""


_ANCHOR = _Anchor()


def worker(*_: object) -> None:
    """Record this process into the session that started it, if it is a child of one.

    Pass it as it is: ``DataLoader(..., worker_init_fn=gpumem.worker)``,
    ``Pool(initializer=gpumem.worker)``. Processes that ``multiprocessing`` forks need it not; those
    that it spawns do. It never fails, and does nothing where no session is kept.
    """
    with contextlib.suppress(Exception):
        _read_place()
        _begin(None)


def place(words: str | None) -> None:
    """Pass the folder for recordings to children that are not forked."""
    if words is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = words
        _watch_forks()


def begin_if_started() -> None:
    """Record this process if multiprocessing, loky or torchrun started it from a session."""
    with contextlib.suppress(Exception):
        if _gpumem._is_disabled() or VARIABLE not in os.environ:
            return
        started = any(part in word for word in sys.orig_argv for part in STARTED_BY)
        if not started and "LOCAL_RANK" not in os.environ:
            return
        _read_place()
        _watch_forks()
        # The fork server itself only starts others.
        if _process_name() != "MainProcess" or "LOCAL_RANK" in os.environ:
            _begin(None)
            _begin_with_work()
            atexit.register(_end)


def exit_codes() -> list[tuple[int, int]]:
    """Return the process id and exit code of each child of multiprocessing that was waited for.

    A signal is a negative number. Children whose process objects are gone are not known.
    """
    known = []
    with contextlib.suppress(Exception):
        # Every process object is in this set as long as it is alive.
        for process in list(getattr(sys.modules.get("multiprocessing.process"), "_dangling", ())):
            # To ask the process itself would wait for it in the user's place.
            started: Any = getattr(process, "_popen", None)
            if started is not None and started.returncode is not None:
                known.append((int(started.pid), int(started.returncode)))
    return known


def handles() -> list[tuple[int, str, str]]:
    """Return the process id, the name and the handle of each child that Python started.

    The handle is ``held`` if code has the object of ``multiprocessing``, ``lost`` if only
    ``multiprocessing`` itself has it, and ``detached`` if the ``subprocess.Popen`` is gone.
    """
    known = []
    with contextlib.suppress(Exception):
        module = sys.modules.get("multiprocessing.process")
        # An object that nothing but such a set has.
        [(_, least)] = _counted({_Anchor()})
        for process, n_references in _counted(set(getattr(module, "_children", ()))):
            started: Any = getattr(process, "_popen", None)
            if started is not None:
                # The set of `multiprocessing` is one more.
                handle = "held" if n_references > least + 1 else "lost"
                known.append((int(started.pid), str(process._name), handle))
    with contextlib.suppress(Exception):
        left = getattr(sys.modules.get("subprocess"), "_active", None)
        known += [(int(process.pid), "", "detached") for process in list(left or ())]
    return known


def _counted(objects: set[Any]) -> list[tuple[Any, int]]:
    return [(it, sys.getrefcount(it)) for it in objects]


def _read_place() -> None:
    words = os.environ.get(VARIABLE)
    if words is not None and not _gpumem._is_disabled():
        _gpumem._child_place(words)


def _begin(_: object) -> None:
    with contextlib.suppress(Exception):
        if not _begin_named():
            return
        util = sys.modules.get("multiprocessing.util")
        if util is not None and _process_name() != "MainProcess":
            util.Finalize(None, _end, exitpriority=-1000)


def _end() -> None:
    with contextlib.suppress(Exception):
        # A launcher may set the rank after the process has started.
        _begin_named()
        _gpumem._child_ended()


def _begin_named() -> bool:
    name, known = _name(), facts()
    if name.startswith("Ray "):
        known.append(("runtime", "ray"))
    return _gpumem._child_begin(name, known)


def _begin_with_work() -> None:
    """Register callbacks with multiprocessing for this process's name and end.

    A fork that multiprocessing has no work for begins when it records a step or a block.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_ANCHOR, _begin)


def _forked() -> None:
    with contextlib.suppress(Exception):
        if _gpumem._child_forked():
            _begin_with_work()


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _name() -> str:
    name = _loader_name() or _rank_name() or _process_name()
    if name is None or name == "MainProcess":
        name = _ray_name() or f"process {os.getpid()}"
    return name


def _loader_name() -> str | None:
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return None
    info = data.get_worker_info()
    number = _worker_id() if info is None else info.id
    return None if number is None else f"DataLoader worker {number}"


def _worker_id() -> int | None:
    """Return the number of a data loader's worker that has not begun its loop."""
    return _argument("torch.utils.data._utils.worker", "worker_id")


def _argument(module: str, name: str) -> int | None:
    """Return what a function of that module is called with, if it is all that this process runs."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None:
        return None
    process = processes.current_process()
    target = getattr(process, "_target", None)
    if target is None or getattr(target, "__module__", "") != module:
        return None
    names = target.__code__.co_varnames
    known = dict(zip(names, process._args, strict=False))
    return known.get(name)


def _rank_name() -> str | None:
    rank = os.environ.get("RANK")
    if rank is None or "LOCAL_RANK" not in os.environ:
        # ``torch.multiprocessing.spawn`` and what is built on it, such as ``notebook_launcher``.
        number = _argument("torch.multiprocessing.spawn", "i")
        rank = None if number is None else str(number)
    return None if rank is None else f"rank {rank}"


def _ray_name() -> str | None:
    """Return the class of the actor that runs in this worker of Ray."""
    ray = sys.modules.get("ray")
    if ray is None:
        return None
    context = ray.get_runtime_context() if ray.is_initialized() else None
    if context is None or context.get_actor_id() is None:
        return "Ray worker"
    # module.Class.method
    return f"Ray actor {context.get_task_function_name().split('.')[-2]}"


def _process_name() -> str | None:
    process = sys.modules.get("multiprocessing.process")
    return None if process is None else process.current_process().name


def facts() -> list[tuple[str, str]]:
    """Return facts about this process from the environment: its rank, its job, its node."""
    if FACTS:
        return [*FACTS, ("host", platform.node())]
    named = ((name, os.environ.get(variable)) for variable, name in PLACES.items())
    known = [(name, value) for name, value in named if value]
    engine = _engine()
    if engine is not None:
        known.append(("rank", str(engine)))
    # The place of a process matters only in a job of several.
    return [*known, ("host", platform.node())] if known else known


def _engine() -> int | None:
    """Return the number of an engine of ipyparallel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    number = getattr(getattr(shell, "kernel", None), "engine_id", None)
    return number if isinstance(number, int) and number >= 0 else None
