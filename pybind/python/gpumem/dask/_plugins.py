"""Plugins for dask's processes: the scheduler and the workers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dask.utils import key_split
from distributed import SchedulerPlugin, WorkerPlugin

from gpumem import _gpumem
from gpumem.dask import _tree, _worker

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

RUNNING = ("executing", "long-running")


class OnScheduler(SchedulerPlugin):
    """Asks the workers, and hands on what they answer."""

    name = "gpumem"
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        """Take messages of clients from now on."""
        self._scheduler = scheduler
        scheduler.handlers["gpumem_roll"] = self.roll

    async def roll(self, request: bytes, seconds: float) -> dict[str, list[Any]]:
        """Ask every worker, the many by way of some."""
        alive = list(self._scheduler.workers)
        answers = await _tree.ask(
            self._scheduler.rpc, _tree.branches(alive), request, seconds * _tree.BELOW
        )
        return {"replies": answers.replies, "silent": answers.silent, "alive": alive}


class OnWorker(WorkerPlugin):
    """Records a worker, and answers for it."""

    name = "gpumem"

    def __init__(self, cluster: str, folder: str | None) -> None:
        self._cluster = cluster
        self._folder = folder
        self._client = (_worker.machine(), os.getpid())
        self._side: _worker.Side | None = None

    def setup(self, worker: Worker) -> None:
        """Begin to record."""
        self._worker = worker
        worker.handlers["gpumem_roll"] = self.roll
        # Workers that are threads of the client's process are part of its own recording.
        is_other = (_worker.machine(), os.getpid()) != self._client
        if is_other and not _gpumem._is_disabled():
            with _worker.quietly("a worker is not recorded"):
                self._side = _worker.begin(worker, self._cluster, self._folder)

    def teardown(self, worker: Worker) -> None:
        """Close the recording."""
        worker.handlers.pop("gpumem_roll", None)
        if self._side is not None:
            self._side = None
            with _worker.quietly("the recording of a worker was not closed"):
                _worker.end()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Note the ends of a task."""
        if self._side is None:
            return
        if finish == "executing":
            with _worker.quietly("a task is not recorded"):
                task = self._worker.state.tasks[key]
                function = getattr(task.run_spec, "func", None)
                self._side.tasks.begin(key, key_split(key), function)
        elif start in RUNNING and finish not in RUNNING:
            with _worker.quietly("a task is not recorded"):
                self._side.tasks.end(key, failed=finish == "error")

    async def roll(self, request: bytes, below: list[str], seconds: float) -> dict[str, list[Any]]:
        """Answer, after those below have."""
        parts = _tree.twigs(list(below))
        answers = await _tree.ask(self._worker.rpc, parts, request, seconds)
        replies = answers.replies
        if self._side is not None and (own := await self._side.answer(request)):
            replies.append(own)
        return {"replies": replies, "silent": answers.silent}
