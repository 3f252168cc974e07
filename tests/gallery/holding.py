"""Who keeps what, worked out by hand from the graph of live objects."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from gpumem import _gpumem


@dataclass(frozen=True)
class Root:
    """A name, what only it keeps, and the way to the largest object of that."""

    name: str
    kind: str
    n_bytes: int
    path: str


KINDS = (
    {"variable", "module_global", "thread_frame"},
    {"run_module"},
    {"output_history"},
    {"traceback"},
    {"debugger"},
    {"system", "cyclic_garbage", "unnamed"},
)
"""What a root of an earlier kind reaches is not told of one of a later kind."""


def roots(device: str) -> list[Root]:
    """Name who keeps memory of a device alone, of its kind and those before it, most first."""
    nodes, edges, entries, _, is_cut = _gpumem._object_graph()
    assert not is_cut
    storages = {
        idx: storage[1]
        for idx, (_, _, storage) in enumerate(nodes)
        if storage is not None and storage[0] == device
    }
    follow = defaultdict(list)
    for holder, target, step in edges:
        follow[holder].append((target, step))
    reached: dict[tuple[str, str], dict[int, str]] = {}
    for name, kind, path, target in entries:
        ways = reached.setdefault((name, kind), {})
        _spread(target, path, follow, ways)
    found = []
    rank = {kind: rank for rank, kinds in enumerate(KINDS) for kind in kinds}
    for key, ways in reached.items():
        others = {
            node
            for other, them in reached.items()
            if other != key and rank[other[1]] <= rank[key[1]]
            for node in them
        }
        own = [node for node in ways if node in storages and node not in others]
        if own:
            largest = max(own, key=lambda node: storages[node])
            n_bytes = sum(storages[node] for node in own)
            found.append(Root(*key, n_bytes, ways[largest]))
    return sorted(found, key=lambda root: -root.n_bytes)


def _spread(
    start: int, path: str, follow: dict[int, list[tuple[int, str]]], ways: dict[int, str]
) -> None:
    ways.setdefault(start, path)
    pending = deque([start])
    while pending:
        node = pending.popleft()
        for target, step in follow[node]:
            if target not in ways:
                ways[target] = ways[node] + step
                pending.append(target)
