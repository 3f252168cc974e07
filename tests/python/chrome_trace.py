"""The rules of the Chrome Trace Event format, as far as a trace of ours uses it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

PHASES = {"M", "X", "C", "i"}
METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}
SCOPES = {"g", "p", "t"}


def checked(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a trace that keeps the rules."""
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    events: list[dict[str, Any]] = trace["traceEvents"]
    for event in events:
        _check_event(event)
    drawn = [event for event in events if event["ph"] != "M"]
    assert [event["ts"] for event in drawn] == sorted(event["ts"] for event in drawn)
    _check_nesting([event for event in events if event["ph"] == "X"])
    _check_names(events)
    # Perfetto knows a thread by its number alone, and takes 0 for the idle one.
    threads = {(event["tid"], event["pid"]) for event in events}
    assert len({tid for tid, _ in threads}) == len(threads)
    return events


def _check_event(event: dict[str, Any]) -> None:
    assert event["ph"] in PHASES
    assert isinstance(event["name"], str)
    assert event["name"]
    for number in ("pid", "tid", "ts"):
        assert type(event[number]) is int, number
        assert event[number] >= (0 if number == "ts" else 1)
    match event["ph"]:
        case "X":
            assert type(event["dur"]) is int
            assert event["dur"] >= 0
        case "C":
            assert event["args"]
            assert all(type(value) in {int, float} for value in event["args"].values())
        case "i":
            assert event["s"] in SCOPES
        case "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
    assert ("dur" in event) == (event["ph"] == "X")


def _check_nesting(slices: list[dict[str, Any]]) -> None:
    """On one track, a slice is inside the one around it or begins after its end."""
    open_ends: dict[tuple[int, int], list[int]] = defaultdict(list)
    for event in slices:
        start, end = event["ts"], event["ts"] + event["dur"]
        around = open_ends[event["pid"], event["tid"]]
        while around and around[-1] <= start:
            around.pop()
        assert not around or end <= around[-1], event
        around.append(end)


def _check_names(events: list[dict[str, Any]]) -> None:
    """Each process and each track of slices has one name."""
    named = [
        (event["name"], event["pid"], event["tid"] if event["name"].startswith("thread") else None)
        for event in events
        if event["ph"] == "M"
    ]
    assert len(set(named)) == len(named)
    assert {("process_name", event["pid"], None) for event in events} <= set(named)
    tracks = {("thread_name", it["pid"], it["tid"]) for it in events if it["ph"] == "X"}
    assert tracks <= set(named)
