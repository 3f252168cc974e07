"""Exports of Nsight Systems, against plain loops over what sqlite3 gives."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.reports import read_file as read

if TYPE_CHECKING:
    from collections.abc import Iterable

REAL_DATA = Path(os.environ.get("GPUMEM_REAL_DATA", Path(__file__).parents[3] / "shared/data"))
REAL_EXPORTS = sorted((REAL_DATA / "nsys_sqlite").glob("*.sqlite"))
MIB = 1 << 20
PID = 4211
GLOBAL_PID = (1 << 48) | PID << 24
GLOBAL_TID = GLOBAL_PID | 77
EPOCH = 1_769_308_002_162_486_533

NEW = {
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs, utcTime",
    "META_DATA_EXPORT": "name, value",
    "ANALYSIS_DETAILS": "globalVid, duration",
    "StringIds": "id, value",
    "PROCESSES": "globalPid, pid, name",
    "TARGET_INFO_GPU": "vmId, id, name, totalMemory, cuDevice",
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": "id, name, label",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start, globalPid, deviceId, contextId, address, pc, bytes,"
    " memKind, memoryOperationType, name, correlationId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, eventClass, globalTid, correlationId, nameId,"
    " returnValue",
    "NVTX_EVENTS": "start, end, eventType, rangeId, domainId, text, globalTid, textId",
}
OLD = {
    "StringIds": "id, value",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start, deviceId, bytes, memoryOperationType",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId, returnValue",
    "NVTX_EVENTS": "start, end, eventType, text, globalTid",
}


def events() -> list[dict[str, int]]:
    """Return four steps that allocate and free, each of which keeps 3 MiB, on two devices."""
    made = []
    for step in range(4):
        begin = 1000 * step
        for at, device, address, mib, kind, operation in (
            (10, 0, 1 + step, 3, 2, 0),
            (20, 1, 100, 40, 2, 0),
            (30, 0, 200 + step, 7, 1, 0),
            (40, 1, 100, 40, 2, 1),
        ):
            row = {"start": begin + at, "globalPid": GLOBAL_PID, "deviceId": device}
            row |= {"contextId": 1, "address": address << 20, "pc": 0, "bytes": mib * MIB}
            made.append(row | {"memKind": kind, "memoryOperationType": operation})
    return made


def ranges() -> list[dict[str, Any]]:
    steps = [
        {"start": 1000 * step, "end": 1000 * step + 500, "eventType": 59, "text": "step"}
        for step in range(4)
    ]
    made = [*steps, {"start": 0, "end": None, "eventType": 60, "textId": 2, "text": None}]
    made.append({"start": 5, "end": None, "eventType": 34, "text": "a mark"})
    return [{"globalTid": GLOBAL_TID} | row for row in made]


CONTENT: dict[str, list[dict[str, Any]]] = {
    "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}],
    "META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION", "value": "2025.3.1"}],
    "ANALYSIS_DETAILS": [{"duration": 5000}],
    "StringIds": [{"id": 1, "value": "cudaMalloc_v3020"}, {"id": 2, "value": "epoch"}],
    "PROCESSES": [{"globalPid": GLOBAL_PID, "pid": PID, "name": "python3"}],
    "TARGET_INFO_GPU": [
        {"id": n, "cuDevice": n, "name": "A100", "totalMemory": 80 * MIB} for n in (0, 1)
    ],
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": [
        {"id": 0, "label": "Allocation"},
        {"id": 1, "label": "Deallocation"},
    ],
    "CUDA_GPU_MEMORY_USAGE_EVENTS": events(),
    "CUPTI_ACTIVITY_KIND_RUNTIME": [
        {"start": 3100, "end": 3110, "globalTid": GLOBAL_TID, "nameId": 1, "returnValue": code}
        for code in (0, 2)
    ],
    "NVTX_EVENTS": ranges(),
}


def written(folder: Path, schema: dict[str, str], *, without: Iterable[str] = ()) -> Path:
    """Write an export; columns that a schema lacks are left out."""
    path = folder / "report 100% #1?.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for table, columns in schema.items():
            if table in without:
                continue
            names = columns.replace("end", '"end"').split(", ")
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            for row in reversed(CONTENT[table]):
                values = [row.get(name.strip('"')) for name in names]
                marks = ", ".join("?" * len(names))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 (our own names)
        connection.commit()
    return path


def opened(path: Path) -> gpumem.types.NsightExport:
    found = gpumem.load(path)
    assert isinstance(found, gpumem.types.NsightExport)
    return found


def plain(device: int, *, is_pinned: bool) -> list[int]:
    """Return the levels of a device by a plain loop."""
    level, levels = 0, []
    for event in sorted(events(), key=lambda event: event["start"]):
        if event["deviceId"] == device and (event["memKind"] == 1) == is_pinned:
            level += -event["bytes"] if event["memoryOperationType"] else event["bytes"]
            levels.append(level)
    return levels


def test_levels_failures_and_ranges(tmp_path: Path) -> None:
    path = written(tmp_path, NEW)
    before = path.read_bytes()
    found = read(path)
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == before
    assert found["version"] == "2025.3.1"
    assert [device["label"] for device in found["devices"]] == ["GPU 0", "GPU 1"]
    for number, device in enumerate(found["devices"]):
        assert (device["name"], device["capacity_bytes"]) == ("A100", 80 * MIB)
        assert [(it["pid"], it["name"]) for it in device["processes"]] == [(PID, "python3")]
        for level in device["levels"]:
            levels = plain(number, is_pinned=level["name"] == "pinned host memory")
            assert level["peak_bytes"] == max(levels)
            assert level["last_bytes"] == levels[-1]
            assert level["n_readings"] == len(levels)
    (failed,) = found["failed_calls"]
    assert (failed["function"], failed["code"], failed["at_nanos"]) == ("cudaMalloc", 2, 3100)
    assert failed["ranges"] == ["epoch", "step"]
    assert failed["allocated_bytes"] == 12 * MIB
    tallies = {tally["name"]: tally for tally in found["ranges"]}
    assert set(tallies) == {"epoch", "step"}
    step = tallies["step"]
    assert (step["n_runs"], step["n_grew"], step["kept_bytes"]) == (4, 4, 12 * MIB)
    assert step["peak_bytes"] == 52 * MIB
    assert (tallies["epoch"]["kept_bytes"], tallies["epoch"]["duration_nanos"]) == (12 * MIB, 5000)
    assert found["n_ranges"] == 5


def test_an_old_schema_has_fewer_columns(tmp_path: Path) -> None:
    found = read(written(tmp_path, OLD))
    assert found["version"] is None
    peaks = [device["levels"][0]["peak_bytes"] for device in found["devices"]]
    assert peaks == [40 * MIB, 40 * MIB]
    assert found["failed_calls"][0]["function"] == "cudaMalloc"


def test_absent_tables_are_normal(tmp_path: Path) -> None:
    memory = "CUDA_GPU_MEMORY_USAGE_EVENTS"
    path = written(tmp_path, NEW, without=[memory, "NVTX_EVENTS", "PROCESSES"])
    found = read(path)
    assert (found["has_memory"], found["devices"], found["ranges"]) == (False, [], [])
    assert found["failed_calls"][0]["allocated_bytes"] is None
    text = opened(path).text(100)
    assert text.startswith("Nsight Systems export · no memory was recorded")
    assert "`nsys profile --cuda-memory-usage=true`" in text
    assert "2      20 ns      10 ns  cudaMalloc" in text
    (calls,) = found["memory_calls"]
    assert calls == {
        "function": "cudaMalloc",
        "n_calls": 2,
        "total_nanos": 20,
        "longest_nanos": 10,
    }


def test_calls_that_were_not_recorded_are_unknown(tmp_path: Path) -> None:
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    found = read(written(tmp_path, NEW, without=[calls]))
    assert (found["has_results"], found["memory_calls"]) == (False, None)


@pytest.mark.skipif(not REAL_EXPORTS, reason=f"no real exports in {REAL_DATA}")
@pytest.mark.parametrize("path", REAL_EXPORTS, ids=lambda path: path.stem)
def test_real_exports(path: Path) -> None:
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        sql = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE returnValue = 2"
        (n_failed,) = connection.execute(sql).fetchone()
    found = read(path)
    assert found["has_memory"] == ("CUDA_GPU_MEMORY_USAGE_EVENTS" in names)
    assert sum(call["code"] == 2 for call in found["failed_calls"]) == n_failed
    assert (found["n_ranges"] > 0) == ("NVTX_EVENTS" in names)


def test_views_and_other_databases_are_not_run(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    endless = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE weights (a)")
        sql = f"CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS {endless} SELECT * FROM n"  # noqa: S608 (our own text)
        connection.execute(sql)
        connection.commit()
    words = "no export of Nsight Systems: its tables are weights"
    with pytest.raises(gpumem.RecordingError, match=words):
        gpumem.load(path)


def test_damaged_exports_are_errors_or_partial(tmp_path: Path) -> None:
    path = written(tmp_path, NEW)
    whole = path.read_bytes()
    said = []
    for at in range(100, len(whole), 97):
        path.write_bytes(whole[:at] + b"\xff" * 23 + whole[at + 23 :])
        try:
            read(path)
        except gpumem.RecordingError as error:
            said.append(str(error))
    assert len(said) > 5
    assert all(str(path) in words for words in said)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(gpumem.RecordingError):
        gpumem.load(path)


def test_a_report_says_how_to_export_it(tmp_path: Path) -> None:
    path = tmp_path / "report1.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 2026@4@1@191-264138605071v0.\n\x0b\x12")
    with pytest.raises(
        gpumem.RecordingError, match=r"nsys export --type sqlite .*report1\.nsys-rep"
    ):
        gpumem.load(path)
