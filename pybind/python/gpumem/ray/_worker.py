"""Code for the machines of the cluster: workers, and an actor that reads their files."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import ray

from gpumem import _gpumem, _processes, _worker_folders


def begin(cluster: str) -> None:
    """Record this process from now on, as a worker of that cluster."""
    if _gpumem._is_disabled():
        return
    node = ray.get_runtime_context().get_node_id()
    name = f"{node[:4]}-{os.getpid()}"
    _processes.FACTS[:] = [("worker", name), ("cluster", cluster)]
    _gpumem.reset()
    _gpumem._keep_in(_folder(cluster, node), None, platform.node(), [])


class Collector:
    """An actor on a node: it hands in what workers recorded there, dead ones, too."""

    def sessions(self, cluster: str, node: str) -> dict[str, tuple[bytes, str]]:
        """Return the bytes of each session by its worker's name, and how it ended."""
        found = {}
        for path in Path(_folder(cluster, node)).glob("*.gpumem"):
            (rank,) = json.loads(_gpumem._ranks([str(path)]).to_json())["ranks"]
            # Ray ends its workers itself, whatever they did.
            ending = "running" if rank["ending"] == "running" else "in_order"
            found[rank["name"]] = (path.read_bytes(), ending)
        return found


def _folder(cluster: str, node: str) -> str:
    # Nodes of one machine, as tests have them, hand in their own workers.
    return _worker_folders.new(f"{cluster}-{node[:8]}")
