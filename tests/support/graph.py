"""The object graph that a look walks, before anything is judged in it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Collection


class Graph:
    """What leads to memory: from every name, or from those of a namespace."""

    def __init__(self, namespace: dict[str, Any] | None = None) -> None:
        nodes, edges, roots, self.n_objects, self.is_cut = _gpumem._testing.object_graph(namespace)
        self.nodes = nodes
        self.roots = roots
        self._steps: dict[int, list[tuple[int, str]]] = {}
        self._holders: dict[int, list[int]] = {}
        for source, target, step in edges:
            self._steps.setdefault(source, []).append((target, step))
            self._holders.setdefault(target, []).append(source)

    def paths(self) -> dict[int, str]:
        """Return the shortest path to each storage, by its bytes."""
        starts = [(path, target) for _, _, path, target in self.roots]
        return {storage[1]: path for storage, path in self._reached(starts)}

    def places(self, n_bytes: int) -> dict[tuple[str, str], set[str]]:
        """Return the paths to one storage, by the kind and name of the root that they begin at."""
        leading = self._leading_to(n_bytes)
        found: dict[tuple[str, str], set[str]] = {}
        for name, kind, start, target in self.roots:
            for storage, path in self._reached([(start, target)], within=leading):
                if storage[1] == n_bytes:
                    found.setdefault((kind, name), set()).add(path)
                    break
        return found

    def categories(self) -> set[str]:
        """Return what the objects are for."""
        return {category for _, category, _ in self.nodes if category is not None}

    def _reached(
        self, starts: list[tuple[str, int]], within: Collection[int] | None = None
    ) -> list[tuple[tuple[str, int], str]]:
        """Return each storage with the shortest path to it."""
        open_ = deque(starts)
        seen: set[int] = set()
        found = []
        while open_:
            path, node = open_.popleft()
            if node in seen or (within is not None and node not in within):
                continue
            seen.add(node)
            storage = self.nodes[node][2]
            if storage is not None:
                found.append((storage, path))
            open_.extend((path + step, target) for target, step in self._steps.get(node, []))
        return found

    def _leading_to(self, n_bytes: int) -> set[int]:
        """Return all that leads to it: a few of the thousands of objects of a shell."""
        open_ = [
            idx for idx, (*_, storage) in enumerate(self.nodes) if storage and storage[1] == n_bytes
        ]
        leading = set(open_)
        while open_:
            new = [it for it in self._holders.get(open_.pop(), []) if it not in leading]
            leading.update(new)
            open_.extend(new)
        return leading


def path_to(value: object, n_bytes: int = 777) -> str | None:
    """Return how the walk gets from a variable `x` to the one tensor of that size."""
    return Graph({"x": value}).paths().get(n_bytes)
