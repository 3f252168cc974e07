"""The side of a worker: its recorder, the tasks that it runs, and what it has not sent yet.

Nothing here knows dask: a worker's plugin calls it, and a test or a benchmark stands in for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgpack

from gpumem import _gpumem, _processes, _worker_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

# The search for holders reads these (pybind/objects/src/walk/roots/dask_worker.rs).
WORKER: Any = None
"""The worker of this process that is recorded."""
OWN: dict[str, None] = {}
"""The names of its attributes that are dask's own."""
RESULTS: dict[Any, Any] = {}
"""Results of tasks that lie in memory."""
ACTORS: dict[Any, Any] = {}

N_POINTS = 128
"""The most points of a device and cell in a reply."""
SAMPLED = "50ms"
"""A worker is sampled that often at the most: it is recorded at all times."""
N_TASKS = 256
"""The most tasks of an interval that are recorded,"""
N_OF_PREFIX = 16
"""and every one of a prefix up to this; then every second, fourth, …"""
MAX_REPLY = 4 << 20
"""Bytes of news in one reply, unless the first are more; the others come with the next one."""

AT_ONCE = (
    "tasks that ran at the same time in one process cannot be distinguished: "
    "growth is judged by cell there"
)

_SAID: set[str] = set()


@contextlib.contextmanager
def quietly(what: str) -> Iterator[None]:
    """Log an internal failure once, and raise nothing."""
    try:
        yield
    except Exception as error:
        words = f"{what}: {type(error).__name__}: {error}"
        if words not in _SAID:
            _SAID.add(words)
            _gpumem._log(words)


class Recorder(Protocol):
    """The recorder of a process."""

    def roll(self, cell: list[Any]) -> int | None:
        """End the interval as a run of that cell; return the run's number."""

    def fetch(self) -> bytes:
        """Return the frames that are new."""

    def look(self, run: int) -> None:
        """Search for what holds memory after a run. Takes a while."""

    def left(self, epoch: str) -> tuple[bytes, str] | None:
        """Return what a process that is gone left on this machine, and how it ended."""


@dataclass(frozen=True)
class Session:
    """This process's own session."""

    folder: str

    def roll(self, cell: list[Any]) -> int | None:
        """End the interval as a run of that cell."""
        source, cell_id, label, number = cell
        return _gpumem._roll(source, cell_id, label, number)

    def fetch(self) -> bytes:
        """Return the frames that are new."""
        return _gpumem._fetch(N_POINTS)

    def look(self, run: int) -> None:
        """Search for what holds memory after a run."""
        _gpumem._look_after(run)

    def left(self, epoch: str) -> tuple[bytes, str] | None:
        """Read what a process that is gone left in the folder."""
        return _gpumem._left_behind(self.folder, epoch, N_POINTS)


def machine() -> str:
    """Return the name that identifies a machine of a cluster."""
    return platform.node()


def begin(worker: Any, cluster: str, folder: str | None) -> Side:
    """Record this process from now on, as a worker of that cluster."""
    global WORKER, RESULTS, ACTORS
    if WORKER is not None:
        raise RuntimeError(f"this process records the worker {WORKER.name} already")
    kept = folder or _worker_folders.new(cluster)
    _processes.FACTS[:] = [("worker", str(worker.name)), ("cluster", cluster)]
    # What was recorded before, if anything, was no part of the cluster.
    _gpumem.reset()
    _gpumem._keep_in(kept, None, machine(), [])
    OWN.clear()
    OWN.update(dict.fromkeys(vars(worker)))
    WORKER, RESULTS, ACTORS = worker, _in_memory(worker.data), worker.state.actors
    _gpumem._begin_interval(SAMPLED)
    epoch, _ = _gpumem.recording()._position()
    return Side(Session(kept), cluster, str(worker.name), worker.address, epoch)


def end() -> None:
    """Close the session: the worker ends in order."""
    global WORKER, RESULTS, ACTORS
    if WORKER is None:
        return
    WORKER, RESULTS, ACTORS = None, {}, {}
    _gpumem._roll("# after the last recorded cell", "gpumem:last", None, None, is_last=True)
    _gpumem._close_store()


@dataclass
class _Running:
    name: str
    file: str | None
    """Where its function is."""
    begun: Any
    """The levels at its begin; ``None`` if it is not recorded."""
    is_alone: bool


class Tasks:
    """The tasks that a worker runs: those that run alone are recorded as blocks of the interval."""

    def __init__(self) -> None:
        self._running: dict[Any, _Running] = {}
        self._n_seen: dict[str, int] = {}
        self._n_recorded: dict[str, int] = {}
        self._is_said = False

    def begin_interval(self) -> None:
        """Reset the counts."""
        self._n_seen.clear()
        self._n_recorded.clear()

    def begin(self, key: Any, name: str, function: Any = None) -> None:
        """Note that a task begins, and read the levels."""
        for other in self._running.values():
            other.is_alone = False
        is_alone = not self._running
        begun = _gpumem._Task() if is_alone and self._is_recorded(name) else None
        file = getattr(getattr(function, "__code__", None), "co_filename", None)
        self._running[key] = _Running(name, file, begun, is_alone)

    def end(self, key: Any, *, failed: bool) -> None:
        """Record a task that is over, if it ran alone."""
        task = self._running.pop(key, None)
        if task is None:
            return
        if not task.is_alone and not self._is_said:
            self._is_said = True
            _gpumem._note_missing(AT_ONCE)
        if task.is_alone and task.begun is not None:
            task.begun.end(task.name, failed, task.file)

    def _is_recorded(self, name: str) -> bool:
        n_seen, n_recorded = self._n_seen.get(name, 0), self._n_recorded.get(name, 0)
        self._n_seen[name] = n_seen + 1
        every = 1 << (n_recorded // N_OF_PREFIX)
        if n_seen % every or sum(self._n_recorded.values()) >= N_TASKS:
            return False
        self._n_recorded[name] = n_recorded + 1
        return True


@dataclass
class Side:
    """One worker, as its cluster queries it. ``epoch`` identifies one life of the worker."""

    recorder: Recorder
    cluster: str
    name: str
    address: str
    epoch: str
    host: str = field(default_factory=machine)
    unsent: list[tuple[int, bytes]] = field(default_factory=list)
    """Frames that the cluster has not acknowledged, with their numbers."""
    sequence: int = 0
    n_rolled: int = 0
    tasks: Tasks = field(default_factory=Tasks)
    _looking: asyncio.Future[None] | None = None
    _unseen: int | None = None
    """A run after which there was no look yet."""

    async def answer(self, request: bytes) -> bytes:
        """Roll if the query says so; return everything that is not acknowledged.

        Returns nothing to a client other than the one that records now.
        """
        query = msgpack.unpackb(request)
        if query["by"] != self.cluster:
            return b""
        acknowledged = query["acks"].get(self.epoch, 0)
        self.unsent = [(number, news) for number, news in self.unsent if number > acknowledged]
        # A roll that was sent again has been done.
        if query["cell"] is not None and query["n"] > self.n_rolled:
            self.n_rolled = query["n"]
            with quietly("an interval was not closed"):
                self._unseen = self.recorder.roll(query["cell"])
                self.tasks.begin_interval()
        if query["wait"]:
            await self._looked()
        with quietly("what a worker recorded was not fetched"):
            self._fetch()
        if not query["wait"] and (self._looking is None or self._looking.done()):
            self._look()
        gone = query["lost"].get(self.epoch, ())
        left = [(epoch, *found) for epoch in gone if (found := self._left(epoch))]
        reply = (self.epoch, self.name, self.host, self.address, self._bounded(), left)
        return bytes(msgpack.packb(reply))

    def _left(self, epoch: str) -> tuple[bytes, str] | None:
        found = []
        with quietly("what a worker left was not read"):
            found.append(self.recorder.left(epoch))
        return found[0] if found else None

    def _fetch(self) -> None:
        news = self.recorder.fetch()
        if news:
            self.sequence += 1
            self.unsent.append((self.sequence, news))

    def _bounded(self) -> list[tuple[int, bytes]]:
        room = MAX_REPLY
        news: list[tuple[int, bytes]] = []
        for number, frames in self.unsent:
            if news and room < len(frames):
                break
            news.append((number, frames))
            room -= len(frames)
        return news

    def _look(self) -> None:
        """Search in a thread of its own: its answer comes with the next reply."""
        run, self._unseen = self._unseen, None
        if run is not None:
            loop = asyncio.get_running_loop()
            self._looking = loop.run_in_executor(None, self._search, run)

    def _search(self, run: int) -> None:
        with quietly("could not search for holders after a run"):
            self.recorder.look(run)

    async def _looked(self) -> None:
        """Wait for the search under way, and search after the latest run."""
        for _ in range(2):
            if self._looking is not None:
                await self._looking
            self._look()


def _in_memory(results: Any) -> dict[Any, Any]:
    """Return the part of a worker's results that is not on the disk."""
    fast = getattr(results, "fast", results)
    fast = getattr(fast, "d", fast)
    return fast if isinstance(fast, dict) else {}
