"""Child processes record themselves: forks, other processes, and those that are killed."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.python,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux reports shares of memory"),
]

# What a spawned child finds: functions of a module that imports gpumem.
WORK = """
    import os, signal, time
    import gpumem

    def keep(mib, n=30, end=None):
        kept = []
        for _ in range(n):
            kept.append(b"x" * (mib << 20))
            time.sleep(0.02)
            gpumem.mark()
        if end is not None:
            # What was read until then is on the disk.
            time.sleep(0.5)
            end()

    def leave_in_disorder():
        os.kill(os.getpid(), signal.SIGKILL)

    def nest():
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=keep, args=(0,), name="nested")
        child.start()
        child.join()
        time.sleep(0.2)
"""
SHELL = """
    import json, multiprocessing, os, sys, threading, time
    from pathlib import Path
    from tests.support.shell import Shell, open_shell
    import work

    def played(cell, **settings):
        shell = open_shell(**{"store": sys.argv[1], "quiet": True, **settings}, prints=True)
        shell.run_line_magic("gpumem", "on")
        shell.user_ns.update(work=work, multiprocessing=multiprocessing)
        assert shell.run_cell(cell, store_history=True).success
        import gpumem
        report = gpumem.report()
        return {"text": report.text(100), **json.loads(report.to_json())}
"""


@pytest.fixture
def play(tmp_path: Path) -> Any:
    (tmp_path / "work.py").write_text(textwrap.dedent(WORK))

    def played(body: str, **environment: str) -> dict[str, Any]:
        source = (
            f"{textwrap.dedent(SHELL)}\nif __name__ == '__main__':\n"
            f"{textwrap.indent(textwrap.dedent(body), '    ')}\n"
            "    print('\\nFOUND' + json.dumps(found))\n"
        )
        script = tmp_path / "session.py"
        script.write_text(source)
        ran = run_python(script, tmp_path / "store", cwd=tmp_path, **environment)
        assert (ran.returncode, ran.stderr) == (0, "")
        before, _, found = ran.stdout.rpartition("\nFOUND")
        answer: dict[str, Any] = json.loads(found)
        return {**answer, "printed": before}

    return played


def children(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {child["name"]: child for child in found.get("processes", [])}


STARTED = """
    context = multiprocessing.get_context({method!r})
    def begun(n):
        keeps = (4 if n == 1 else 0, 60)
        return context.Process(target=work.keep, args=keeps, name=f"w-{{n}}")
    each = [begun(n) for n in range(3)]
    for process in each: process.start()
    for process in each: process.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_leaks_is_named(play: Any, method: str) -> None:
    cell = textwrap.dedent(STARTED.format(method=method))
    found = play(f"found = played({cell!r})")
    each = children(found)
    assert set(each) == {"w-0", "w-1", "w-2"}
    assert {child["ending"] for child in each.values()} == {"in_order"}
    growth = each["w-1"]["growth"]
    assert (growth["state"], growth["per"]) == ("leak", "step")
    assert growth["bytes_per_step"] == pytest.approx(4 << 20, rel=0.2)
    assert each["w-0"]["growth"]["state"] == "stable"
    (finding,) = found["process_findings"]
    assert finding["pids"] == [each["w-1"]["pid"]]
    assert finding["title"].startswith(f"w-1 (pid {each['w-1']['pid']}) keeps ")
    assert f"▲ {finding['title']}" in found["text"].replace("\n  ", " ")


def test_a_killed_worker_is_reported_with_its_memory(play: Any) -> None:
    cell = """
keeps = (2, 30, work.leave_in_disorder)
process = multiprocessing.Process(target=work.keep, args=keeps, name="w-0")
process.start()
process.join()
assert process.exitcode == -9
"""
    found = play(f"multiprocessing.set_start_method('fork'); found = played({cell!r})")
    (child,) = found["processes"]
    assert (child["ending"], child["exit_code"], child["ended_in_run"]) == ("killed", -9, 0)
    assert child["latest_bytes"] - child["first_bytes"] > 50 << 20
    run = found["runs"][0]
    assert run["started_nanos"] < child["until_nanos"] <= run["ended_nanos"]
    assert "was killed by SIGKILL" in found["text"]


def test_workers_that_are_killed_alike_are_one_finding(play: Any) -> None:
    cell = """
keeps = (0, 5, work.leave_in_disorder)
each = [multiprocessing.Process(target=work.keep, args=keeps, name=f"w-{n}") for n in range(3)]
for process in each: process.start()
for process in each: process.join()
"""
    found = play(f"multiprocessing.set_start_method('fork'); found = played({cell!r})")
    text = " ".join(found["text"].split())
    assert "3 of 3 ws (0, 1, 2) were killed by SIGKILL, the first " in text
    assert text.count("SIGKILL, the first") == 1


def test_a_report_says_there_are_children_and_how_to_see_them(play: Any) -> None:
    cell = textwrap.dedent(STARTED.format(method="spawn"))
    found = play(f"""
        found = played({cell!r})
        shell = Shell.instance()
        shell.run_line_magic("gpumem_report", "")
        shell.run_line_magic("gpumem_report", "--processes --text")
        shell.run_line_magic("gpumem_report", "--processes --html children")
        import gpumem
        found["table"] = gpumem.report().processes._repr_html_()
        found["page"] = Path("children.html").read_text()
    """)
    assert "3 child processes: `%gpumem_report --processes` shows them" in found["printed"]
    assert "Processes · 3 children" in found["printed"]
    assert "w-1" in found["table"]
    assert " a step</td>" in found["table"]
    assert "<title>this session · child processes</title>" in found["page"]
    assert "▲ w-1 (pid " in found["page"]


def test_a_pool_has_one_finding(play: Any) -> None:
    cell = """
with multiprocessing.Pool(4) as pool:
    pool.starmap(work.keep, [(4,)] * 4, chunksize=1)
"""
    found = play(f"multiprocessing.set_start_method('fork'); found = played({cell!r})")
    assert len(found["processes"]) == 4
    assert len(found["process_findings"]) <= 1


def test_a_child_of_a_child_is_recorded(play: Any) -> None:
    cell = """
process = multiprocessing.Process(target=work.nest, name="outer")
process.start()
process.join()
"""
    found = play(f"multiprocessing.set_start_method('fork'); found = played({cell!r})")
    each = children(found)
    assert set(each) == {"outer", "nested"}
    assert each["nested"]["parent_pid"] == each["outer"]["pid"]


def test_short_children_leave_nothing_and_many_are_bounded(play: Any, tmp_path: Path) -> None:
    cell = """
import os, time
for n in range(200):
    if not (pid := os.fork()):
        os._exit(0)
    os.waitpid(pid, 0)
"""
    found = play(f"found = played({cell!r})")
    assert children(found) == {}
    assert list((tmp_path / "store").glob("*.processes")) == []


RECORDS = {
    "nothing": "pass",
    "a step": "gpumem.mark()",
    "a block": "with gpumem.record('work'): pass",
    "by name": "gpumem.worker()",
}


@pytest.mark.parametrize("act", RECORDS.values(), ids=RECORDS.keys())
def test_a_bare_fork_is_recorded_once_it_records(play: Any, act: str) -> None:
    cell = f"""
import gpumem, os, time
if not (pid := os.fork()):
    time.sleep(0.15)
    {act}
    time.sleep(0.15)
    os._exit(7)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
time.sleep(0.3)  # Once somebody has waited for it, its exit code is gone.
os.waitpid(pid, 0)
"""
    found = play(f"found = played({cell!r})")
    codes = [child["exit_code"] for child in found.get("processes", [])]
    assert codes == ([] if act == "pass" else [7])


def test_forks_while_other_threads_allocate(play: Any) -> None:
    cell = """
import gpumem, os, time
pids = []
for n in range(40):
    if not (pid := os.fork()):
        gpumem.mark()
        time.sleep(0.15)
        os._exit(n % 3)
    pids.append(pid)
ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
assert ended == [n % 3 for n in range(40)]
"""
    body = f"""
    import gpumem
    over = []
    def busy():
        while not over:
            [bytearray(n) for n in range(0, 200_000, 1000)]
            gpumem.mark()
    threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
    for thread in threads: thread.start()
    found = played({cell!r})
    over.append(1)
    """
    found = play(body, PYTHONWARNINGS="ignore")
    codes = sorted(child["exit_code"] for child in found["processes"])
    assert len(codes) > 30
    assert set(codes) == {0, 1, 2}


@pytest.mark.parametrize("off", ["variable", "setting"])
def test_where_nothing_is_kept_no_child_records(play: Any, tmp_path: Path, off: str) -> None:
    cell = textwrap.dedent(STARTED.format(method="fork"))
    options, environment = "", {"GPUMEM_DISABLE": "1"}
    if off == "setting":
        options, environment = ", store=False", {}
    read = "found['variable'] = os.environ.get('GPUMEM_PROCESSES')"
    found = play(f"found = played({cell!r}{options})\n{read}", **environment)
    assert found["variable"] is None
    assert children(found) == {}
    assert not (tmp_path / "store").exists()


def test_the_header_names_rank_and_job(play: Any) -> None:
    body = """
    from gpumem import _gpumem
    found = played("1")
    import gpumem
    path = os.path.join(sys.argv[1], "x.gpumem")
    gpumem.recording().save(path)
    found["bytes"] = Path(path).read_bytes().decode("latin-1")
    """
    found = play(body, RANK="2", SLURM_JOB_ID="4711", SLURMD_NODENAME="node-17")
    for name, value in (("rank", "2"), ("slurm_job", "4711"), ("slurm_node", "node-17")):
        assert f"{name}{chr(0xA0 + len(value))}{value}" in found["bytes"]


def test_a_child_that_cannot_write_runs_on(play: Any) -> None:
    cell = """
import os
folder = os.environ["GPUMEM_PROCESSES"].split(" ", 5)[5]
open(folder, "w").close()
process = multiprocessing.Process(target=work.keep, args=(1,))
process.start()
process.join()
assert process.exitcode == 0
"""
    found = play(f"multiprocessing.set_start_method('fork'); found = played({cell!r})")
    assert children(found) == {}
