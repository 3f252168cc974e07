"""The side of the client: which workers there are and were, and what they sent."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack

from gpumem import _gpumem
from gpumem.dask import _plugins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distributed import Client

PATIENCE = 2.0
"""Seconds that a cell waits for its roll at the most,"""
SHORT_PATIENCE = 0.5
"""and while workers are silent."""
PATIENCE_OF_A_REPORT = 10.0
"""Seconds that a report waits for the searches for holders."""

_CLUSTERS: list[Cluster] = []


@dataclass
class WorkerSession:
    """One life of a worker: what it sent, in the order in which it was recorded."""

    epoch: str
    """Its session's id: another one after each start."""
    name: str
    host: str
    address: str
    """Its last known address, which does not identify it."""
    ending: str = "running"
    """``running``, ``in_order``, ``killed_by_system``, ``out_of_memory``, or ``lost``."""
    n_acknowledged: int = 0
    """The number of its last reply."""
    frames: bytes = b""
    is_handed_in: bool = False
    """It is gone, and the file that it left on its machine has been read."""

    def take(self, news: Iterable[tuple[int, bytes]]) -> None:
        """Append what is new; what came before, or comes too early, changes nothing."""
        for number, frames in news:
            if number == self.n_acknowledged + 1:
                self.n_acknowledged = number
                self.frames += frames

    def inherit(self, frames: bytes, ending: str) -> None:
        """Take what was left on its machine, if that goes further than what it sent."""
        self.is_handed_in = True
        self.ending = ending
        if not self.frames or _gpumem._is_further(self.frames, frames):
            self.frames = frames


class Cluster:
    """The workers of a dask cluster, as they are recorded. Made by ``gpumem.dask.register``."""

    def __init__(self, client: Client, folder: str | None) -> None:
        self._client = client
        self._id = uuid.uuid4().hex[:12]
        self._workers: dict[str, WorkerSession] = {}
        self._numbers = itertools.count(1)
        self._lost: dict[str, list[str]] = {}
        self._said: set[str] = set()
        self._patience = PATIENCE
        self._folder: Path | None = None
        client.register_plugin(_plugins.OnScheduler())
        client.register_plugin(_plugins.OnWorker(self._id, folder))
        _CLUSTERS.append(self)
        _gpumem._on_run_end(_ended)
        self._ask(None, PATIENCE)

    @property
    def workers(self) -> list[WorkerSession]:
        """Every life of every worker, by name, in the order in which they were heard of."""
        return sorted(self._workers.values(), key=lambda it: (len(it.name), it.name))

    def roll(self, name: str) -> None:
        """Close the interval on each worker, as a run of that name, and open the next.

        Recorded cells and ``with gpumem.record(name):`` do this by themselves. It waits for two
        seconds at the most and never fails; what did not come in time comes with the next roll.
        """
        self._roll([f"cluster.roll({name!r})", f"roll:{name}", name, None])

    def report(self) -> _gpumem.JobRanks:
        """Return the report on all workers, with what each has recorded until the last roll.

        It has ``text()`` and ``to_json()``.
        """
        self._collect()
        return _gpumem._workers(
            [(self._opened_by(it), it.frames, it.ending) for it in self._known()]
        )

    def recordings(self) -> dict[str, _gpumem.Recording]:
        """Return the recording of each worker by its name, the latest if it was restarted."""
        self._collect()
        return {it.name: _gpumem.Recording.from_bytes(_recording(it)) for it in self._known()}

    def save(self, folder: str | Path) -> list[Path]:
        """Write a file for each worker into a folder; ``jupyter gpumem report FOLDER`` reads it."""
        self._collect()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        written = []
        for worker in self._known():
            path = self._path(self._folder, worker)
            _gpumem._write_file(path, _recording(worker))
            written.append(path)
        return written

    def close(self) -> None:
        """Record the workers no longer. What they recorded stays here."""
        if self not in _CLUSTERS:
            return
        self._collect()
        _CLUSTERS.remove(self)
        if not _CLUSTERS:
            _gpumem._on_run_end(None)
        try:
            self._client.unregister_worker_plugin("gpumem")
        except Exception as error:
            self._say("the workers of the cluster may still be recorded", error)
        for worker in self._workers.values():
            if worker.ending == "running":
                worker.ending = "in_order"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the workers side by side, on a page to explore."""
        from gpumem._file_page import mime_bundle

        return mime_bundle(self.report(), Path("workers"))

    def __repr__(self) -> str:
        n_alive = sum(it.ending == "running" for it in self._workers.values())
        return f"<gpumem.dask.Cluster: {n_alive} workers>"

    def _roll(self, cell: list[Any]) -> None:
        """End a run of that cell on the workers, with one message."""
        if self._ask(cell, self._patience):
            self._said.clear()

    def _collect(self) -> None:
        """Fetch what searches have found meanwhile, and what dead workers left."""
        self._ask(None, PATIENCE_OF_A_REPORT, wait=True)
        if self._lost:
            self._ask(None, PATIENCE, wait=True)

    def _ask(self, cell: list[Any] | None, seconds: float, *, wait: bool = False) -> bool:
        """Send one message; return whether all workers answered."""
        if self not in _CLUSTERS:
            return True
        request = {
            "by": self._id,
            "n": next(self._numbers),
            "cell": cell,
            "acks": {it.epoch: it.n_acknowledged for it in self._workers.values()},
            "lost": self._lost,
            "wait": wait,
        }
        message = {"request": msgpack.packb(request), "seconds": seconds}
        try:
            answer = self._client.sync(self._send, message, callback_timeout=seconds)
            self._take(answer)
        except Exception as error:
            self._patience = SHORT_PATIENCE
            self._say("the cluster did not answer, its news come later", error)
            return False
        n_silent = len(answer["silent"])
        self._patience = SHORT_PATIENCE if n_silent else PATIENCE
        if n_silent:
            n_all = len(answer["alive"])
            words = "workers did not answer in time, their news come later"
            self._say(f"{n_silent} of {n_all} {words}")
        return not n_silent

    async def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        scheduler: Any = self._client.scheduler
        answer: dict[str, Any] = await scheduler.gpumem_roll(**message)
        return answer

    def _take(self, answer: dict[str, Any]) -> None:
        heard: dict[str, WorkerSession] = {}
        for reply in answer["replies"]:
            epoch, name, host, address, news, left = msgpack.unpackb(reply)
            known = self._workers.setdefault(epoch, WorkerSession(epoch, name, host, address))
            known.address = address
            known.ending = "running"
            known.take(news)
            heard[epoch] = known
            for other, frames, ending in left:
                if other in self._workers:
                    self._workers[other].inherit(frames, ending)
        self._note_lost(heard, set(answer["alive"]) - set(answer["silent"]))
        # Silent ones may be busy: only those that are gone are lost.
        for epoch, worker in self._workers.items():
            is_gone = epoch not in heard and worker.address not in answer["alive"]
            if is_gone and worker.ending == "running":
                worker.ending = "lost"
        self._lost = self._heirs(heard)

    def _note_lost(self, heard: dict[str, WorkerSession], answered: set[str]) -> None:
        """Note which are gone: another epoch answers at their address, or by their name."""
        names = {(it.host, it.name) for it in heard.values()}
        for epoch, worker in self._workers.items():
            is_replaced = worker.address in answered or (worker.host, worker.name) in names
            if epoch not in heard and worker.ending == "running" and is_replaced:
                worker.ending = "lost"

    def _heirs(self, heard: dict[str, WorkerSession]) -> dict[str, list[str]]:
        """Return who is to hand in what which workers left: any that is on their machine."""
        by_host = {it.host: it.epoch for it in heard.values()}
        heirs: dict[str, list[str]] = {}
        for worker in self._workers.values():
            is_wanted = worker.ending != "running" and not worker.is_handed_in
            if is_wanted and worker.host in by_host:
                heirs.setdefault(by_host[worker.host], []).append(worker.epoch)
        return heirs

    def _known(self) -> list[WorkerSession]:
        return [it for it in self.workers if it.frames]

    def _opened_by(self, worker: WorkerSession) -> str:
        path = None if self._folder is None else self._path(self._folder, worker)
        return str(path) if path is not None and path.exists() else ""

    def _path(self, folder: Path, worker: WorkerSession) -> Path:
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in worker.name)
        return folder / f"{name}-{worker.epoch[:8]}.gpumem"

    def _say(self, words: str, error: BaseException | None = None) -> None:
        """Log it once, until the cluster has answered again."""
        if words not in self._said:
            self._said.add(words)
            reason = "" if error is None else f": {str(error) or type(error).__name__}"
            _gpumem._log(f"{words}{reason}")


def register(client: Client, folder: str | None = None) -> Cluster:
    """Record the workers of a dask cluster, including workers that join later.

    At the end of each recorded cell, and of each ``with gpumem.record(name):`` outside of one, one
    message closes an interval on each worker as a run of that cell. ``folder`` is where each worker
    keeps its session, by default in the machine's temporary folder.

    gpumem has to be installed where the workers and the scheduler run.

    Raises:
        ValueError: the client is asynchronous.
    """
    if client.asynchronous:
        raise ValueError("register takes a client that is not asynchronous")
    for cluster in _CLUSTERS.copy():
        if cluster._client is client:
            cluster.close()
    return Cluster(client, folder)


def _ended(source: str, cell_id: str, label: str | None, number: int | None) -> None:
    for cluster in _CLUSTERS.copy():
        if cluster._client.status == "running":
            cluster._roll([source, cell_id, label, number])


def _recording(worker: WorkerSession) -> bytes:
    return _gpumem._worker_recording(worker.frames, worker.ending)
