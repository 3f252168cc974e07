"""Cells that run at the same time: in subshells of a kernel (JEP 91), in threads and in tasks."""

from __future__ import annotations

import ast
import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ipykernel
import pytest

from tests.python.test_kernel import TIMEOUT, Kernel, Ran, new_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jupyter_client.blocking import BlockingKernelClient
    from jupyter_client.manager import KernelManager

pytestmark = [
    pytest.mark.ipython,
    pytest.mark.skipif(ipykernel.version_info < (7,), reason="this ipykernel has no subshells"),
]

MIB = 1 << 20

PRELUDE = """
%load_ext gpumem
import asyncio, gpumem, json, threading, time
from gpumem import sim
sim.use(8 << 30)
kept, others = [], []
begun, may_end = threading.Event(), threading.Event()

def wait(event):
    while not event.is_set():
        time.sleep(0.005)
"""

# A main cell that runs from before another one begins until after that has ended.
AROUND = "%%gpumem -l main\nkept.append(sim.tensor(100 << 20)); begun.set(); wait(may_end)"
INSIDE = "%%gpumem -l sub\nothers.append(sim.tensor(7 << 20))"


class Shells(Kernel):
    """A kernel whose cells run at the same time."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        super().__init__(manager, client)
        self.outputs: dict[str, list[dict[str, Any]]] = {}
        self.idle: set[str] = set()

    def control(self, msg_type: str, **content: str) -> dict[str, Any]:
        """Send a message on the control channel and return the reply's content."""
        message = self.client.session.msg(msg_type, content)
        self.client.control_channel.send(message)
        answer: dict[str, Any] = self.client.get_control_msg(timeout=TIMEOUT)["content"]
        assert answer["status"] == "ok", answer
        return answer

    def new_subshell(self) -> str:
        """Create a subshell, as a frontend does for a console."""
        subshell: str = self.control("create_subshell_request")["subshell_id"]
        return subshell

    def finish(self, request: str) -> Ran:
        """Wait for a cell, whichever others end meanwhile."""
        while request not in self.idle:
            self.take_in(self.client.get_iopub_msg(timeout=TIMEOUT))
        return Ran("", 0, {}, self.outputs.pop(request, []))

    def take_in(self, message: dict[str, Any]) -> None:
        """Keep a message for the cell that it is of."""
        request = message["parent_header"].get("msg_id")
        if message["content"].get("execution_state") == "idle":
            self.idle.add(request)
        else:
            self.outputs.setdefault(request, []).append(message)

    def run(self, code: str, **content: Any) -> Ran:
        """Run a cell."""
        return self.finish(self.start(code, **content))

    def value(self, expression: str) -> Any:
        """Evaluate in the main shell, without running a cell."""
        ran = self.run(f"print({expression})", store_history=False)
        assert [error["content"]["evalue"] for error in ran.of("error")] == []
        # A look that was missed says so in a line before it.
        return ast.literal_eval(ran.printed.splitlines()[-1])

    def runs(self, device: str = "sim:0") -> list[dict[str, Any]]:
        """Return the outermost runs on a device."""
        chosen = f"[r for r in gpumem.report().runs if r['device'] == '{device}']"
        found: list[dict[str, Any]] = self.value(f"[r for r in {chosen} if r['parent'] is None]")
        return found


@contextmanager
def new_shells(folder: Path) -> Iterator[Shells]:
    """Start a kernel that has gpumem and a simulated device."""
    with new_kernel(folder, Shells) as shells:
        # ipykernel has one message for the results of all threads: two that end at once send it
        # twice.
        shells.client.session.digest_history_size = 0
        shells.run(PRELUDE)
        yield shells


@pytest.fixture(scope="module")
def the_shells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shells]:
    with new_shells(tmp_path_factory.mktemp("ipython")) as shells:
        yield shells


@pytest.fixture
def shells(the_shells: Shells) -> Shells:
    """Return a kernel that has recorded nothing."""
    the_shells.run(PRELUDE)
    the_shells.run("%gpumem reset")
    the_shells.run("%gpumem off")
    return the_shells


@pytest.fixture
def subshell(shells: Shells) -> Iterator[str]:
    subshell = shells.new_subshell()
    yield subshell
    shells.control("delete_subshell_request", subshell_id=subshell)


def side_by_side(shells: Shells, subshell: str) -> tuple[Ran, Ran]:
    """Run one cell in the time of another."""
    shells.run("begun.clear(); may_end.clear()", store_history=False)
    outer = shells.start(AROUND)
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    inner = shells.run(INSIDE, subshell=subshell)
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    return shells.finish(outer), inner


def test_each_cell_is_a_run_with_a_line_of_its_own(shells: Shells, subshell: str) -> None:
    outer, inner = side_by_side(shells, subshell)
    main, sub = shells.runs()
    assert [main["label"], sub["label"]] == ["main", "sub"]
    assert [main["status"], sub["status"]] == ["ok", "ok"]
    assert [main["overlaps"], sub["overlaps"]] == [[sub["run"]], [main["run"]]]
    assert [main["kept_bytes"], sub["kept_bytes"]] == [107 * MIB, 7 * MIB]
    assert [main["overlap_bytes"], sub["overlap_bytes"]] == [7 * MIB, 7 * MIB]
    numbers = {main["execution_count"], sub["execution_count"]}
    assert len(numbers) == 2
    beside = "together with In [{}], which ran, too"
    [line] = outer.lines
    assert line.startswith("+100 MiB kept · +7 MiB " + beside.format(sub["execution_count"]))
    [line] = inner.lines
    assert line.startswith("+7 MiB " + beside.format(main["execution_count"]))


def test_the_report_says_which_runs_were_not_alone(shells: Shells, subshell: str) -> None:
    side_by_side(shells, subshell)
    text = shells.value("[gpumem.report().text(100)]")[0]
    main, sub = (f"In [{run['execution_count']}]" for run in shells.runs())
    assert f"+7 MiB with {sub} · main" in text
    assert f"+7 MiB with {main} · sub" in text
    assert "1 run, none alone" in text
    assert "fine" not in text
    table = shells.value("[gpumem.recording()._report_csv()]")[0]
    assert [line.split(",")[-2:] for line in table.splitlines() if "sim:0" in line] == [
        ["1", str(7 * MIB)],
        ["0", str(7 * MIB)],
    ]


def test_the_device_is_as_the_last_cell_to_end_left_it(shells: Shells, subshell: str) -> None:
    side_by_side(shells, subshell)
    devices = "json.loads(gpumem.report().to_json())['devices']"
    allocated = f"[it['allocated_bytes'] for it in {devices} if it['label'] == 'sim:0']"
    assert shells.value(allocated) == [107 * MIB]


def test_no_verdict_is_built_on_what_moved_together(shells: Shells, subshell: str) -> None:
    for _ in range(10):
        shells.run("begun.clear(); may_end.clear()", store_history=False)
        outer = shells.start("%%gpumem -l idle --no-holders\nbegun.set(); wait(may_end)")
        shells.run("wait(begun)", subshell=subshell, store_history=False)
        code = "%%gpumem -l grows --no-holders\nothers.append(sim.tensor(7 << 20))"
        shells.run(code, subshell=subshell)
        shells.run("may_end.set()", subshell=subshell, store_history=False)
        shells.finish(outer)
    assert [run["overlap_bytes"] for run in shells.runs()] == [7 * MIB] * 20
    assert shells.value("[it.title for it in gpumem.report().findings]") == []


def test_a_name_that_grows_proves_it_all_the_same(shells: Shells, subshell: str) -> None:
    for _ in range(10):
        side_by_side(shells, subshell)
    found = "[(it.cell.label, it.state, it.holders[0].name) for it in gpumem.report().findings]"
    assert sorted(shells.value(found)) == [
        ("main", "leak", "kept"),
        ("sub", "suspected", "others"),
    ]


def test_steps_beside_another_cell_do_not_hide_the_others(shells: Shells, subshell: str) -> None:
    request = shells.start(
        "%%gpumem --no-holders\nfor n in gpumem.steps(range(40)):\n"
        "    kept.append(sim.tensor(1 << 20))\n    if n == 19: begun.set(); wait(may_end)"
    )
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    shells.run("%%gpumem\nothers.append(sim.tensor(900 << 20))", subshell=subshell)
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    shells.finish(request)
    found = "[(it.state, it.bytes_per_run) for it in gpumem.report().findings if it.path]"
    assert shells.value(found) == [("leak", MIB)]


def test_the_ends_of_interleaved_cells_find_their_begins(shells: Shells, subshell: str) -> None:
    first = shells.start(
        "%%gpumem -l first\nbegun.set(); wait(may_end); kept.append(sim.tensor(16 << 20))",
        subshell=subshell,
    )
    other = shells.new_subshell()
    shells.run("wait(begun)", subshell=other, store_history=False)
    shells.run("ended = threading.Event()", subshell=other, store_history=False)
    second = shells.start(
        "%%gpumem -l second\nothers.append(sim.tensor(64 << 20)); may_end.set(); wait(ended)"
    )
    inner = shells.finish(first)
    shells.run("ended.set()", subshell=other, store_history=False)
    outer = shells.finish(second)
    shells.control("delete_subshell_request", subshell_id=other)
    assert [len(ran.lines) for ran in (inner, outer)] == [1, 1]
    runs = shells.runs()
    assert [run["label"] for run in runs] == ["first", "second"]
    assert [run["kept_bytes"] // MIB for run in runs] == [80, 80]
    assert runs[0]["ended_nanos"] < runs[1]["ended_nanos"]


def test_sixty_cells_in_four_shells_are_sixty_runs(shells: Shells) -> None:
    shells.run("%gpumem on")
    subshells = [None, *(shells.new_subshell() for _ in range(3))]
    kept = [f"kept.append(sim.tensor({n + 1} << 10))" for n in range(60)]
    cells = [f"time.sleep({n % 5} / 100)\n{line}" for n, line in enumerate(kept)]
    places = itertools.cycle(subshells)
    requests = [shells.start(cell, subshell=next(places)) for cell in cells]
    rans = [shells.finish(request) for request in requests]
    shells.run("%gpumem off")
    for subshell in subshells[1:]:
        shells.control("delete_subshell_request", subshell_id=str(subshell))
    assert [ran.of("error") for ran in rans] == [[]] * 60
    runs = [run for run in shells.runs() if "kept.append" in run["cell"]["label"]]
    assert sorted(run["cell"]["label"] for run in runs) == sorted(kept)
    assert {run["status"] for run in runs} == {"ok"}


def test_why_works_while_a_cell_runs(shells: Shells, subshell: str) -> None:
    request = shells.start(AROUND)
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    [line] = shells.run("%gpumem why", subshell=subshell).lines
    assert "100 MiB  kept" in line
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    [line] = shells.finish(request).lines
    assert line.startswith("+100 MiB kept · peak")
    assert [run["overlaps"] for run in shells.runs()] == [[]]


def test_a_ctrl_c_ends_the_main_cell_alone(shells: Shells, subshell: str) -> None:
    main = shells.start("%%gpumem -l main\nbegun.set()\nwait(threading.Event())")
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    sub = shells.start("%%gpumem -l sub\nbegun.clear()\nwait(may_end)", subshell=subshell)
    other = shells.new_subshell()
    shells.run("while begun.is_set(): time.sleep(0.005)", subshell=other, store_history=False)
    shells.manager.interrupt_kernel()
    [error] = shells.finish(main).of("error")
    assert error["content"]["ename"] == "KeyboardInterrupt"
    shells.run("may_end.set()", subshell=other, store_history=False)
    ran = shells.finish(sub)
    shells.control("delete_subshell_request", subshell_id=other)
    assert (ran.of("error"), len(ran.lines)) == ([], 1)
    statuses = {run["label"]: run["status"] for run in shells.runs()}
    assert statuses == {"main": "interrupted", "sub": "ok"}
    [line] = shells.run("%%gpumem\nx = 1").lines
    assert line.startswith("kept nothing · peak")


def test_a_cell_whose_subshell_is_deleted_is_over(shells: Shells) -> None:
    subshell, other = shells.new_subshell(), shells.new_subshell()
    shells.start("%%gpumem -l gone\nbegun.set()\nawait asyncio.sleep(600)", subshell=subshell)
    shells.run("wait(begun)", subshell=other, store_history=False)
    shells.control("delete_subshell_request", subshell_id=subshell)
    shells.control("delete_subshell_request", subshell_id=other)
    # Its coroutine is freed in the middle of another cell, and says then that it has ended.
    freed = "%%gpumem -l next\nimport gc; gc.collect(); kept.append(sim.tensor(1 << 20))"
    for _ in range(2):
        [line] = shells.run(freed).lines
        assert line.startswith("+1 MiB kept · peak")
    gone, *later = shells.runs()
    assert (gone["label"], gone["status"]) == ("gone", "interrupted")
    assert {run["status"] for run in later} == {"ok"}
    assert [run["overlaps"] for run in later] == [[], []]


def test_the_sampler_goes_on_until_the_last_cell_ends(shells: Shells, subshell: str) -> None:
    request = shells.start(
        "%%gpumem -l main\nbegun.set(); wait(may_end)\n"
        "spike = b'x' * (64 << 20); time.sleep(0.2); del spike"
    )
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    shells.run(INSIDE, subshell=subshell)
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    shells.finish(request)
    main, _ = shells.runs("host")
    assert main["peak_bytes"] - max(main["before_bytes"], main["after_bytes"]) > 40 * MIB


def test_blocks_and_marks_stay_in_their_own_cell(shells: Shells, subshell: str) -> None:
    request = shells.start(
        "%%gpumem -l main\nbegun.set(); wait(may_end)\n"
        "with gpumem.record('in main'): gpumem.mark('m')"
    )
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    code = "with gpumem.record('in sub'): gpumem.mark('s')"
    shells.run(f"%%gpumem -l sub\n{code}", subshell=subshell)
    shells.run(code.replace("in sub", "unrecorded"), subshell=subshell)
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    shells.finish(request)
    rows = shells.value("[r for r in gpumem.report().runs if r['device'] == 'host']")
    labels = {row["run"]: row["label"] for row in rows}
    parents = {row["label"]: labels.get(row["parent"]) for row in rows}
    assert parents == {
        "main": None,
        "sub": None,
        "in main": "main",
        "in sub": "sub",
        "unrecorded": None,
    }


def test_a_thread_works_for_the_cell_that_began_last(shells: Shells) -> None:
    shells.run(
        "%%gpumem -l first\ndef work():\n    with gpumem.record('in a thread'): pass\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()"
    )
    rows = shells.value("[r for r in gpumem.report().runs if r['device'] == 'host']")
    assert [row["parent"] for row in rows] == [None, rows[0]["run"]]


def test_a_task_that_outlives_its_cell_is_in_no_other(shells: Shells) -> None:
    shells.run(
        "%%gpumem -l first\nasync def work():\n    await asyncio.sleep(0)\n    begun.set()\n"
        "    while not may_end.is_set(): await asyncio.sleep(0.005)\n"
        "    with gpumem.record('late'): await asyncio.sleep(0)\n"
        "task = asyncio.create_task(work())"
    )
    shells.run("%%gpumem -l second\nmay_end.set()\nawait task")
    rows = shells.value("[r for r in gpumem.report().runs if r['device'] == 'host']")
    assert [(row["label"], row["parent"]) for row in rows] == [
        ("first", None),
        ("second", None),
        ("late", None),
    ]
    assert [row["overlaps"] for row in rows] == [[], [2], []]


def test_blocks_of_two_threads_of_a_cell_overlap(shells: Shells) -> None:
    shells.run(
        "%%gpumem\nbarrier = threading.Barrier(2, timeout=30)\ndef work(name):\n"
        "    with gpumem.record(name): barrier.wait(); kept.append(sim.tensor(1 << 20)); "
        "barrier.wait()\n"
        "threads = [threading.Thread(target=work, args=(name,)) for name in 'ab']\n"
        "[it.start() for it in threads]; [it.join() for it in threads]"
    )
    rows = shells.value("[r for r in gpumem.report().runs if r['device'] == 'host']")
    assert [row["overlaps"] for row in rows] == [[], [2], [1]]


def test_a_reset_beside_a_cell_forgets_its_run(shells: Shells, subshell: str) -> None:
    request = shells.start(AROUND)
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    shells.run("%gpumem reset", subshell=subshell)
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    ran = shells.finish(request)
    assert (ran.lines, ran.of("error")) == ([], [])
    [line] = shells.run("%%gpumem\nx = 1").lines
    assert line.startswith("kept nothing · peak")
    assert len(shells.runs()) == 1


def test_a_traced_cell_leaves_no_history_to_another(shells: Shells, subshell: str) -> None:
    request = shells.start(f"%%gpumem --trace -l main\n{AROUND.partition(chr(10))[2]}")
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    code = "%%gpumem --trace -l sub\nothers.append(sim.tensor(7 << 20))"
    [line] = shells.run(code, subshell=subshell).lines
    assert "! not traced: another cell is being traced" in line
    shells.run("may_end.set()", subshell=subshell, store_history=False)
    [line] = shells.finish(request).lines
    assert "! " not in line
    assert shells.value("[it['run'] for it in gpumem.report().traces]") == [0]


def test_sources_are_chosen_for_each_cell_alone(shells: Shells, subshell: str) -> None:
    request = shells.start("%%gpumem --source sim\nbegun.set(); wait(may_end)")
    shells.run("wait(begun)", subshell=subshell, store_history=False)
    second = "%%gpumem --source torch\nmay_end.set(); time.sleep(0.2)"
    shells.run(second, subshell=subshell)
    shells.finish(request)
    used = "[name for name, used, _ in gpumem._gpumem.source_states() if used]"
    assert shells.value(used) == ["host", "sim"]
