"""The side of the driver: it starts the cluster, and gathers what its workers recorded."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gpumem import _gpumem
from gpumem.ray import _worker

PATIENCE = 30.0
"""Seconds that machines have to hand in what was recorded there."""
HOOK = "worker_process_setup_hook"


class Cluster:
    """The workers of a Ray cluster, as they are recorded. Made by ``gpumem.ray.init``."""

    def __init__(self, cluster: str) -> None:
        self._id = cluster
        self._found: dict[str, tuple[bytes, str]] = {}

    def report(self) -> _gpumem.JobRanks:
        """Return the report on all workers, with what each has recorded until now.

        It has ``text()`` and ``to_json()``.
        """
        self._collect()
        found = self._found.values()
        return _gpumem._workers([("", frames, ending) for frames, ending in found])

    def recordings(self) -> dict[str, _gpumem.Recording]:
        """Return the recording of each worker by its name: its node and its process id."""
        self._collect()
        return {
            name: _gpumem.Recording.from_bytes(_gpumem._worker_recording(frames, ending))
            for name, (frames, ending) in self._found.items()
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write a file for each worker into a folder; ``jupyter gpumem report FOLDER`` reads it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, recording in self.recordings().items():
            written.append(folder / f"{name}.gpumem")
            recording.save(written[-1])
        return written

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the workers side by side, on a page to explore."""
        from gpumem._file_page import mime_bundle

        return mime_bundle(self.report(), Path("workers"))

    def __repr__(self) -> str:
        return f"<gpumem.ray.Cluster: {len(self._found)} workers handed in>"

    def _collect(self) -> None:
        """Fetch the recordings of all machines through the object store.

        Earlier recordings of a machine that is gone stay.
        """
        if not ray.is_initialized():
            return
        try:
            nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
            replies = {_handed_in(self._id, node): node for node in nodes}
            ready, silent = ray.wait(list(replies), num_returns=len(replies), timeout=PATIENCE)
        except Exception as error:
            _gpumem._log(f"the Ray cluster did not answer: {type(error).__name__}: {error}")
            return
        for reply in ready:
            self._take(reply, replies[reply])
        if silent:
            _gpumem._log(f"{len(silent)} of {len(replies)} nodes did not answer in time")

    def _take(self, reply: Any, node: str) -> None:
        try:
            self._found.update(ray.get(reply))
        except Exception as error:
            _gpumem._log(f"node {node[:4]} handed in nothing: {type(error).__name__}: {error}")


def init(*arguments: Any, **options: Any) -> Cluster:
    """Start or join a Ray cluster as ``ray.init`` does, and record its workers.

    Takes what ``ray.init`` takes. gpumem has to be installed on all machines; where it is not,
    tasks run as ever, and nothing is recorded.

    Raises:
        RuntimeError: Ray is initialized already.
        TypeError: ``runtime_env`` is no dictionary.
        ValueError: ``runtime_env`` has a ``worker_process_setup_hook`` of its own.
    """
    if ray.is_initialized():
        raise RuntimeError("Ray is initialized already: call gpumem.ray.init in place of ray.init")
    environment = options.pop("runtime_env", None) or {}
    if not isinstance(environment, dict):
        raise TypeError(f"runtime_env is a dictionary, not {type(environment).__name__}")
    if HOOK in environment:
        raise ValueError(f"runtime_env has a {HOOK} already: gpumem needs it for its own")
    cluster = uuid.uuid4().hex[:12]

    # Sent by value: without gpumem, a worker starts all the same.
    def begin() -> None:
        try:
            from gpumem.ray import _worker

            _worker.begin(cluster)
        except Exception:  # noqa: S110 (it would fail the user's task)
            pass

    ray.init(*arguments, runtime_env={**environment, HOOK: begin}, **options)
    return Cluster(cluster)


def _handed_in(cluster: str, node: str) -> Any:
    """Return the reference to what an actor on that node finds there."""
    where = NodeAffinitySchedulingStrategy(node, soft=False)
    actor: Any = ray.remote(_worker.Collector).options(num_cpus=0, scheduling_strategy=where)
    return actor.remote().sessions.remote(cluster, node)
