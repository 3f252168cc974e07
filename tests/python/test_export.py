"""What others read: traces, tables and JSON."""

from __future__ import annotations

import json
import mmap
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import jsonschema
import pytest
from gpumem import sim

from tests.python.arrow import Reader
from tests.python.chrome_trace import checked
from tests.support.shell import new_session, shells

if TYPE_CHECKING:
    from tests.python.conftest import Shell

SCHEMA = Path(__file__).parents[2] / "docs/report.schema.json"

MIB = 1 << 20

BLOCKS = """
import asyncio, gpumem
async def task(n):
    with gpumem.record(f"task {n}"):
        await asyncio.sleep(0.002 * n)
async def all_of_them():
    await asyncio.gather(*(task(n) for n in range(4)))
with gpumem.record("outer"):
    for _ in gpumem.steps(range(12), "batch"):
        with gpumem.record("inner"):
            kept.append(sim.tensor(4 << 20))
await all_of_them()
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> gpumem.types.Recording:
    """Return a recording with all that a trace draws: a leak, blocks, steps, a trace, an error."""
    new_session()
    with shells(tmp_path_factory.mktemp("session")) as new_shell:
        shell = new_shell()
        sim.use(total_bytes=400 << 20)
        shell.run("from gpumem import sim\nkept = []")
        for _ in range(10):
            shell.run("%%gpumem -q\nkept.append(sim.tensor(4 << 20))")
        shell.run(f"%%gpumem -q --label blocks{BLOCKS}")
        shell.run("%%gpumem -q --trace\ntemporary = sim.tensor(8 << 20)\ndel temporary")
        shell.run("%%gpumem -q\nsim.tensor(1 << 40)")
        return gpumem.types.Recording.from_bytes(gpumem.recording().to_bytes())


def trace_of(recording: gpumem.types.Recording, folder: Path) -> list[dict[str, Any]]:
    path = folder / "session.trace.json"
    gpumem.report(recording).save(path)
    return checked(json.loads(path.read_text(encoding="utf-8")))


def test_a_trace_keeps_the_formats_rules(session: gpumem.types.Recording, tmp_path: Path) -> None:
    events = trace_of(session, tmp_path)
    slices = [event for event in events if event["ph"] == "X"]
    runs = {row["run"] for row in gpumem.report(session).runs}
    assert {event["args"]["run"] for event in slices if event["cat"] == "run"} == runs
    inner = [event for event in slices if event["name"] == "inner"]
    assert [event["args"]["sim:0"]["kept_bytes"] for event in inner] == [4 * MIB] * 12
    steps = [event for event in slices if event["name"] == "batch"]
    assert [event["args"]["first_step"] for event in steps] == list(range(1, 13))
    assert {event["tid"] for event in slices if event["name"].startswith("task")} > {1}


def test_a_traces_counters_are_the_levels(session: gpumem.types.Recording, tmp_path: Path) -> None:
    events = trace_of(session, tmp_path)
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    allocated = [
        event["args"]["bytes"]
        for event in events
        if event["name"] == "allocated" and names[event["pid"]].startswith("sim:0")
    ]
    levels = Reader(gpumem.report(session).table("samples")).columns
    highest = max(level for level in levels["allocated_bytes"] if level is not None)
    assert (allocated[0], max(allocated)) == (0, highest)


def test_a_traces_findings_are_the_reports(session: gpumem.types.Recording, tmp_path: Path) -> None:
    found = [event for event in trace_of(session, tmp_path) if event["ph"] == "i"]
    report = gpumem.report(session)
    assert sorted(event["name"] for event in found) == sorted(
        finding.title.replace("`", "") for finding in report.findings
    )
    assert {event["args"]["kind"] for event in found} >= {"leak", "out_of_memory"}


@pytest.mark.parametrize("what", ["runs", "samples", "findings"])
def test_a_table_is_a_stream_of_arrow(session: gpumem.types.Recording, what: str) -> None:
    table = gpumem.report(session).table(what)
    read = Reader(table)
    assert read.columns == table._columns()
    assert read.n_rows == len(table) > 0
    # Each stream is of its own.
    assert Reader(table).columns == read.columns


def test_a_report_is_a_stream_of_its_runs(session: gpumem.types.Recording) -> None:
    report = gpumem.report(session)
    columns = Reader(report).columns
    of_cell = {"cell": "label", "cell_id": "id"}
    for name, values in columns.items():
        part = of_cell.get(name)
        expected = [row["cell"][part] if part else row[name] for row in report.runs]
        assert values == expected, name
    flat = {k for k, v in report.runs[0].items() if not isinstance(v, list | dict)}
    assert flat - set(columns) == {"oom"}


def test_samples_are_all_that_was_read(session: gpumem.types.Recording) -> None:
    columns = Reader(gpumem.report(session).table("samples")).columns
    assert set(columns["series"]) == {"sampled", "marked", "traced"}
    assert set(columns["label"]) == {None, "batch"}
    assert columns["run"] == sorted(columns["run"])


def test_an_empty_table_has_its_columns(shell: Shell) -> None:
    shell.run("pass")
    for what in ("runs", "samples", "findings"):
        read = Reader(gpumem.report().table(what))
        assert read.n_rows == 0
        assert all(values == [] for values in read.columns.values())


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory as Linux shows it")
def test_a_stream_that_nobody_reads_is_freed() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * mmap.PAGESIZE

    gpumem._gpumem.use_sources(["host"])
    with gpumem.record("loop"):
        for _ in range(3000):
            gpumem.mark()
    table = gpumem.report().table("samples")
    assert len(table) > 2000
    before = 0
    # The heap keeps what the first ones needed, and no more: one is 100 kB and more.
    for n in range(1100):
        table.__arrow_c_stream__()
        if n == 100:
            before = resident_bytes()
    assert resident_bytes() - before < 50 * MIB


def test_there_is_no_other_table(session: gpumem.types.Recording) -> None:
    with pytest.raises(ValueError, match='there is no table "cells"\nhint: name "runs"'):
        gpumem.report(session).table("cells")


@pytest.mark.parametrize("what", ["runs", "samples", "findings"])
def test_a_table_is_a_data_frame(
    session: gpumem.types.Recording, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pandas = types.ModuleType("pandas")
    vars(pandas)["DataFrame"] = dict
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    report = gpumem.report(session)
    assert report.to_pandas(what) == report.table(what)._columns()


def strict(schema: Any) -> Any:
    """Return the schema of today: it has every field that there is, and no other."""
    if isinstance(schema, list):
        return [strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: strict(entry) for name, entry in schema.items()}
    if "properties" in schema and "required" in schema:
        assert list(schema["properties"]) == schema["required"]
        own["additionalProperties"] = False
    return own


def test_a_reports_json_is_as_its_schema_says(
    session: gpumem.types.Recording, shell: Shell
) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(strict(schema))
    content = json.loads(gpumem.report(session).to_json())
    assert all(content[name] for name in ("devices", "runs", "findings", "traces", "holders"))
    validator.validate(content)
    gpumem._gpumem.reset()
    shell.run("pass")
    validator.validate(json.loads(gpumem.report().to_json()))
