"""Traces and memory timelines of PyTorch's profiler, against Python's own reading of them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.python import traces
from tests.support.programs import run_gpumem as command

if TYPE_CHECKING:
    from tests.python.conftest import Shell

DATA = Path(__file__).parents[1] / "data" / "traces"
MORE = os.environ.get("GPUMEM_TRACES")
STEPS = DATA / "steps.pt.trace.json.gz"
MODULES = DATA / "modules.pt.trace.json.gz"
RAW = DATA / "timeline.raw.json.gz"
ALL = [*DATA.glob("*.json*"), *(Path(MORE).glob("*.json*") if MORE else [])]
TRACES = sorted(path for path in ALL if "trace" in path.name or "hta_df" in path.name)


def opened(path: Path) -> gpumem.types.TorchTrace:
    trace = gpumem.load(path)
    assert isinstance(trace, gpumem.types.TorchTrace)
    return trace


def read(path: Path) -> Any:
    found = gpumem.load(path)
    assert isinstance(found, (gpumem.types.TorchTrace, gpumem.types.MemoryTimeline))
    return json.loads(found.to_json())


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_levels_are_those_of_python(path: Path) -> None:
    found = read(path)
    events = traces.content(path)["traceEvents"]
    courses = traces.courses(events)
    assert {device["label"] for device in found["devices"]} == set(courses)
    for device in found["devices"]:
        levels = [level for _, level in courses[device["label"]]]
        expected = [levels[0], max(levels), levels[-1], len(levels) - 1]
        names = ["start_bytes", "peak_bytes", "end_bytes", "n_changes"]
        assert [device[name] for name in names] == expected
        if device["owners_at_peak"] is not None:
            owned = sum(owner["bytes"] for owner in device["owners_at_peak"])
            assert owned <= device["peak_bytes"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_operators_are_those_of_python(path: Path) -> None:
    found = read(path)
    events = traces.content(path)["traceEvents"]
    labels = [device["label"] for device in found["devices"]]
    rows = {
        row["name"]: {
            "n": row["n_calls"],
            "total": row["total_nanos"],
            "self": row["self_nanos"],
            "memory": {
                labels[held["device_idx"]]: [held["self_bytes"], held["allocated_bytes"]]
                for held in row["memory"]
            },
        }
        for row in found["operators"]
    }
    expected = traces.operator_rows(events)
    assert set(rows) == set(expected)
    assert rows == expected
    kernels = {row["name"]: (row["n_calls"], row["total_nanos"]) for row in found["kernels"]}
    assert kernels == traces.kernel_rows(events)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_ranges_have_what_python_finds(path: Path) -> None:
    found = read(path)
    events = traces.content(path)["traceEvents"]
    courses = traces.courses(events)
    ranges = traces.spans(events, of_kind="range")
    assert len(found["ranges"]) == len(ranges)
    starts = [traces.extent(event) for event in ranges]
    for (start, end), item in list(zip(sorted(starts), found["ranges"], strict=True))[:200]:
        assert item["duration_nanos"] == end - start or starts.count((start, end)) == 0
        for held in item["memory"]:
            course = courses[found["devices"][held["device_idx"]]["label"]]
            within = [
                level for at, level in course if start <= at <= start + item["duration_nanos"]
            ]
            before = [level for at, level in course if at < start][-1]
            assert held["peak_bytes"] == max([before, *within])
            assert held["kept_bytes"] == [before, *within][-1] - before


def test_operators_are_those_of_torch() -> None:
    """Torch's own table of the same run, which merges calls of an operator by itself."""
    rows = {row["name"]: row for row in read(MODULES)["operators"]}
    table = json.loads((DATA / "modules.key_averages.json").read_text())
    found = {name: figures for name, figures in table.items() if name in rows}
    assert len(found) > 30
    for name, (n_calls, self_micros, _, self_bytes) in found.items():
        row = rows[name]
        assert row["n_calls"] >= n_calls, name
        assert row["self_nanos"] == pytest.approx(self_micros * 1000, abs=row["n_calls"]), name
        assert sum(held["self_bytes"] for held in row["memory"]) == self_bytes, name


def test_a_leak_from_step_to_step_is_listed_first() -> None:
    lines = opened(STEPS).text().splitlines()
    assert lines[0].startswith("PyTorch profiler trace · 2314 events · ")
    assert lines[1].startswith("cpu peak: 13 MiB, after ")
    assert lines[2].startswith(
        "▲ cpu grows: +1 MiB every step, over 12 steps; at the end most is of "
    )
    assert "aten::add, 12 MiB in 12 blocks" in " ".join(lines[2:4])
    assert max(map(len, lines)) <= 100
    growth = read(STEPS)["devices"][0]["growth"]
    assert (growth["state"], growth["bytes_per_run"]) == ("leak", 1 << 20)


def test_rows_are_by_shapes_and_modules() -> None:
    trace = opened(MODULES)
    assert "aten::addmm · [[128], [32, 64], [64, 128], [], []]" in trace.text(200, by="shapes")
    assert "aten::addmm · Linear_0" in trace.text(by="module")
    assert trace.text(by="function").count(".py:") > 5
    assert "profile with `with_stack=True" in opened(STEPS).text(by="module")
    with pytest.raises(ValueError, match=r"by is 'name', .* or 'function', not \"size\""):
        trace.text(by="size")
    found = read(MODULES)
    for rows in ("operators_by_shapes", "operators_by_module", "operators_by_function"):
        for figure in ("n_calls", "self_nanos"):
            whole = sum(row[figure] for row in found["operators"])
            assert sum(row[figure] for row in found[rows]) == whole


def test_a_timeline_has_its_categories() -> None:
    found = read(RAW)
    expected = traces.timeline(traces.content(RAW))
    assert (found["start_bytes"], found["peak_bytes"], found["end_bytes"]) == expected
    parts = sum(category["at_peak_bytes"] for category in found["categories"])
    assert parts == found["peak_bytes"]
    timeline = gpumem.load(RAW)
    assert isinstance(timeline, gpumem.types.MemoryTimeline)
    text = timeline.text()
    assert text.startswith("PyTorch memory timeline · ")
    assert "parameters" in text
    # The other form has the same levels, at whole microseconds.
    other = read(DATA / "timeline.json")
    assert (other["start_bytes"], other["end_bytes"]) == (expected[0], expected[2])
    assert other["peak_bytes"] <= expected[1]


def test_a_folder_holds_workers(tmp_path: Path) -> None:
    trace = traces.content(STEPS)
    for rank in (1, 0):
        worker = trace | {"distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl"}}
        (tmp_path / f"w{1 - rank}.pt.trace.json").write_text(json.dumps(worker))
    text = opened(tmp_path).text()
    assert text.startswith("PyTorch profiler traces · 2 workers\n  w1.pt.trace.json · rank 0 of 2")
    assert "▲ grows +1 MiB every step" in text
    workers = read(tmp_path)["workers"]
    assert [workers[f"w{n}.pt.trace.json"]["rank"] for n in (0, 1)] == [1, 0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(gpumem.RecordingError, match="no trace in this folder"):
        gpumem.load(tmp_path / "empty")


@pytest.mark.parametrize(
    ("content", "offset", "words"),
    [
        (b'{"cells": []}', 12, "a JSON object with cells, without `traceEvents`"),
        (b'{"traceEvents": [{"ph"', 22, "the file ends inside the JSON"),
        (b'{"traceEvents": [\n{"ph" "X"}]}', 24, "damaged JSON: expected `:`"),
        (b"[[1, 2], [3, 4]]", 14, "a row has 2 numbers, not 4"),
        (gzip.compress(b"some words"), 0, "a gzip file with text in it\nhint: unpack it first"),
        (gzip.compress(b'{"a": 1}' * 999)[:20], None, "damaged gzip data"),
        (b"<html><title>GPU Memory Timeline HTML</title>", 0, "a picture and no figures\nhint: "),
    ],
    ids=["other JSON", "cut", "damaged", "other list", "other gzip", "cut gzip", "picture"],
)
def test_another_file_says_where_reading_stopped(
    tmp_path: Path, content: bytes, offset: int | None, words: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(gpumem.RecordingError) as raised:
        gpumem.load(path)
    assert words in str(raised.value)
    assert str(raised.value).startswith(f"{path}: byte ")
    assert offset is None or raised.value.offset == offset


def test_the_command_line_recognises_a_trace(tmp_path: Path) -> None:
    shown = command("report", STEPS)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("PyTorch profiler trace · ")
    assert json.loads(command("report", STEPS, "--json").stdout)["n_events"] == 2314
    assert "aten::addmm · [[" in command("report", STEPS, "--by", "shapes").stdout
    page = tmp_path / "page.html"
    assert command("report", STEPS, "--html", page).returncode == 0
    assert f'data-name="{STEPS.name}"' in page.read_text()
    assert (
        "only a trace of PyTorch's profiler has --by"
        in command("report", RAW, "--by", "name").stderr
    )
    shutil.copy(STEPS, tmp_path)
    assert command("report", tmp_path).stdout.startswith("PyTorch profiler trace · ")
    compared = command("compare", STEPS, STEPS).stdout
    assert compared.startswith("a trace of PyTorch's profiler, before and after\n")
    assert " in both\n" in compared
    refused = command("compare", RAW, RAW)
    assert "a memory timeline of PyTorch cannot be compared with" in refused.stderr
    assert "hint: two recordings can, two memory snapshots or traces" in refused.stderr
    refused = command("compare", RAW, STEPS)
    assert "a trace of PyTorch's profiler cannot be compared with a memory" in refused.stderr


def test_the_magic_recognises_a_trace(shell: Shell) -> None:
    shell.run(f"%gpumem_report --text {STEPS}")
    assert shell.lines[-1].startswith("PyTorch profiler trace · ")
    shell.run(f"%gpumem_report {STEPS}")
    shown = shell.shown[-1]["data"]
    assert shown["text/plain"].startswith("PyTorch profiler trace · ")
    assert shown["text/html"].startswith("<iframe")
    shell.run(f"%gpumem_report {RAW}")
    assert shell.lines[-1].startswith("PyTorch memory timeline · ")
