"""Traces of PyTorch's profiler, read with Python's json module."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

OPERATORS = {"cpu_op", "operator", "cuda_runtime", "runtime", "cuda_driver"}
KERNELS = {"kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset"}
Event = dict[str, Any]


def content(path: Path) -> Any:
    """Return a file's JSON, unpacked if it has to be."""
    packed = path.read_bytes()
    return json.loads(gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed)


def nanos(micros: float) -> int:
    """Return microseconds as whole nanoseconds, as a file's reader rounds them."""
    return round(micros * 1000)


def extent(event: Event) -> tuple[int, int]:
    """Return a span's start and end."""
    start = nanos(event["ts"])
    return start, start + nanos(event["dur"])


def thread(event: Event) -> tuple[str, str]:
    """Return names of process and thread: old traces write some as numbers, some as texts."""
    return str(event["pid"]), str(event["tid"])


def category(event: Event) -> str:
    """Return a category in lower case."""
    return str(event.get("cat", "")).lower()


def spans(events: list[Event], *, of_kind: str) -> list[Event]:
    """Return the operators, kernels or steps and ranges, in the order of the file."""

    def kind(event: Event) -> str:
        if category(event) in KERNELS:
            return "kernel"
        if category(event) == "user_annotation" or (
            category(event) in OPERATORS and event["name"].startswith("ProfilerStep#")
        ):
            return "range"
        return "operator" if category(event) in OPERATORS else "other"

    return [event for event in events if event["ph"] == "X" and kind(event) == of_kind]


def memory(events: list[Event]) -> list[Event]:
    """Return the allocations and frees, in the order of time."""
    found = [event for event in events if event.get("name") == "[memory]"]
    return sorted(found, key=lambda event: nanos(event["ts"]))


def device(change: Event) -> str:
    """Return the label of a change's device."""
    kind, number = change["args"]["Device Type"], change["args"]["Device Id"]
    return "cpu" if kind == 0 else f"cuda:{number}"


def courses(events: list[Event]) -> dict[str, list[tuple[int, int]]]:
    """Return the level before the first change, then those after each, with their times."""
    found: dict[str, list[tuple[int, int]]] = {}
    changes = defaultdict(list)
    for change in memory(events):
        changes[device(change)].append(change)
    for label, of_device in changes.items():
        is_absolute = any(change["args"].get("Total Allocated", 0) > 0 for change in of_device)
        first = of_device[0]["args"]
        level = max(0, first["Total Allocated"] - first["Bytes"]) if is_absolute else 0
        found[label] = [(-1, level)]
        for change in of_device:
            args = change["args"]
            level = args["Total Allocated"] if is_absolute else level + args["Bytes"]
            found[label].append((nanos(change["ts"]), level))
    return found


def operator_rows(events: list[Event]) -> dict[str, dict[str, Any]]:
    """Return calls, times and own memory of each operator."""
    rows: dict[str, dict[str, Any]] = {}
    by_thread = defaultdict(list)
    for event in spans(events, of_kind="operator"):
        start, end = extent(event)
        by_thread[thread(event)].append((start, -end, 0, event))
    for change in memory(events):
        at = nanos(change["ts"])
        by_thread[thread(change)].append((at, 1, 1, change))
    for items in by_thread.values():
        around: list[Event] = []
        for start, _, is_change, event in sorted(items, key=lambda item: item[:3]):
            at = start - 1 if is_change else start
            while around and extent(around[-1])[1] <= at:
                around.pop()
            outer = rows[around[-1]["name"]] if around else None
            if is_change:
                if outer is not None:
                    held = outer["memory"].setdefault(device(event), [0, 0])
                    held[0] += event["args"]["Bytes"]
                    held[1] += max(0, event["args"]["Bytes"])
                continue
            duration = extent(event)[1] - extent(event)[0]
            row = rows.setdefault(event["name"], {"n": 0, "total": 0, "self": 0, "memory": {}})
            row["n"] += 1
            # The time of a call inside of its like is part of that one's.
            if all(outer["name"] != event["name"] for outer in around):
                row["total"] += duration
            row["self"] += duration
            if outer is not None:
                outer["self"] -= duration
            around.append(event)
    return rows


def kernel_rows(events: list[Event]) -> dict[str, tuple[int, int]]:
    """Return runs and time of each kernel."""
    rows: dict[str, tuple[int, int]] = {}
    for event in spans(events, of_kind="kernel"):
        n_calls, time = rows.get(event["name"], (0, 0))
        rows[event["name"]] = (n_calls + 1, time + nanos(event["dur"]))
    return rows


def timeline(rows: Any) -> tuple[int, int, int]:
    """Return first, highest and last level of a timeline in the raw form."""
    start = sum(row[2] for row in rows if row[0] < 0)
    level, peak = start, start
    for at, _, n_bytes, _ in rows:
        if at >= 0:
            level += n_bytes
            peak = max(peak, level)
    return start, peak, level
