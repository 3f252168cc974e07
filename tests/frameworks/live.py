"""What a walk over live objects finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from gpumem import _gpumem


@dataclass(frozen=True)
class Found:
    """The graph of what leads to device memory."""

    nodes: list[Any]
    edges: list[Any]

    @property
    def n_bytes(self) -> dict[str, int]:
        """Bytes by device, each storage once."""
        sums: Counter[str] = Counter()
        for _, _, storage in self.nodes:
            if storage is not None:
                sums[storage[0]] += storage[1]
        return dict(sums)

    @property
    def steps(self) -> set[str]:
        """How the objects are reached from each other."""
        return {step for _, _, step in self.edges}

    def by_category(self) -> dict[str, int]:
        """Bytes of the storages that tensors of a category hold."""
        sums: Counter[str] = Counter()
        held = set()
        for holder, target, _ in self.edges:
            category, storage = self.nodes[holder][1], self.nodes[target][2]
            if storage is not None and (category, target) not in held:
                held.add((category, target))
                sums[category] += storage[1]
        return dict(sums)


def look(**names: Any) -> Found:
    """Walk from these names alone."""
    nodes, edges, _, _, is_cut = _gpumem._testing.object_graph(names)
    assert not is_cut
    return Found(nodes, edges)
