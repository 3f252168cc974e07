"""What becomes a run, how it ended, and what happens when we fail ourselves."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem
from IPython.core.displaypub import DisplayPublisher

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20


def runs() -> list[tuple[str, str]]:
    """Return label and status of each run."""
    return [(row["cell"]["label"], row["status"]) for row in host_rows()]


def host_rows() -> list[dict[str, Any]]:
    return [row for row in gpumem.report().runs if row["device"] == "host"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x = 1", "ok"),
        ("x = 1 / 0", "error"),
        ("x = = 1", "error"),
        ("raise SystemExit(3)", "error"),
        ("raise KeyboardInterrupt", "interrupted"),
        ("await __import__('asyncio').sleep(0)", "ok"),
        ("raise MemoryError('out of room')", "error"),
        ("raise MemoryError('std::bad_alloc: out_of_memory: CUDA error')", "out_of_memory"),
        ("from gpumem import sim\nsim.use(1 << 20)\nsim.tensor(1 << 30)", "out_of_memory"),
    ],
)
def test_a_run_keeps_how_it_ended(shell: Shell, body: str, status: str) -> None:
    shell.run(f"%%gpumem --label it\n{body}")
    assert runs() == [("it", status)]
    assert len(shell.lines) == 1


def test_an_error_whose_texts_fail_is_an_error(shell: Shell) -> None:
    broken = "class Broken(RuntimeError):\n    def __str__(self):\n        1 / 0\n"
    shell.run(f"%%gpumem --label it\n{broken}raise Broken")
    assert runs() == [("it", "error")]


@pytest.mark.parametrize(
    "body",
    [
        "get_ipython().run_cell('%%gpumem\\ny = 1')",
        "get_ipython().run_cell('1 / 0')",
        "%%capture\nprint(1)",
        "%%capture\n%%gpumem\nprint(1)",
        "get_ipython().run_cell('get_ipython().run_cell(\"1\")')",
    ],
)
def test_only_the_outermost_run_counts(shell: Shell, body: str) -> None:
    shell.run("%gpumem on")
    n_lines = len(shell.lines)
    shell.run(f"%%gpumem --label it\n{body}")
    assert [label for label, _ in runs()] == ["it"]
    assert len(shell.lines) == n_lines + 1
    shell.run("after = 1")
    assert [label for label, _ in runs()] == ["it", "after = 1"]


def test_a_run_has_the_number_that_jupyter_shows(shell: Shell) -> None:
    shell.run("pass")
    outcome = shell.run("%%gpumem\n1")
    (row,) = host_rows()
    assert row["execution_count"] == outcome.raw.execution_count == 2
    shell.run("%%gpumem\n1", store_history=False)
    assert host_rows()[-1]["execution_count"] is None


def test_a_cell_typed_again_is_the_same_cell(shell: Shell) -> None:
    for cell in ("%%gpumem\nx = 1", "%%gpumem -q\n\nx = 1  ", "%%gpumem\nx = 2"):
        shell.run(cell)
    first, again, other = (row["cell"]["id"] for row in host_rows())
    assert first == again != other


def test_silent_cells_and_empty_cells_are_no_runs(shell: Shell) -> None:
    shell.run("%gpumem on")
    shell.run("hidden = 1", silent=True)
    shell.run("")
    shell.run("   \n ")
    assert runs() == []
    shell.run("seen = 1")
    assert runs() == [("seen = 1", "ok")]


def test_with_every_cell_recorded_only_news_is_printed(shell: Shell) -> None:
    shell.run("%gpumem on")
    shell.run("from gpumem import sim\nsim.use()\nkept = []")
    n_lines = len(shell.lines)
    for _ in range(20):
        shell.run("x = 1")
    assert len(shell.lines) == n_lines
    shell.run("kept.append(sim.tensor(1 << 30))")
    assert shell.lines[n_lines:][0].startswith("+1 GiB kept · ")


def fail_with(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [ValueError("ours"), SystemExit(9), GeneratorExit()])
@pytest.mark.parametrize("when", ["begin", "end"])
def test_our_own_failure_stays_with_us(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    when: str,
) -> None:
    if when == "begin":
        monkeypatch.setattr("gpumem.magics.cell_options", fail_with(error))
    else:
        monkeypatch.setattr(type(shell.display_pub), "publish", property(fail_with(error)))
    fails_alone(shell, caplog, f"{type(error).__name__}: {error}".rstrip(": "))
    monkeypatch.undo()
    shell.run("%gpumem on")
    assert shell.run("%%gpumem\n3").result == "3"
    assert runs()[-1] == ("3", "ok")


def test_our_own_panic_stays_with_us(
    shell: Shell, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    _gpumem._testing.panic_in_next_callback()
    fails_alone(shell, caplog, "panic: panic requested by a test")
    assert capfd.readouterr() == ("", "")
    assert "panic: panic requested by a test" in status(shell)
    shell.run("%gpumem reset")
    assert "stopped" not in status(shell)


def test_on_resumes_recording_after_a_nested_failure(shell: Shell) -> None:
    fail = "from gpumem import _gpumem\n_gpumem._testing.panic_in_next_callback()"
    shell.run(f"%%gpumem --source sim\n{fail}\nget_ipython().run_cell('1')")
    assert "panic: panic requested by a test" in status(shell)
    assert source_is_left_out("host") is False
    shell.run("%gpumem on")
    shell.run("after = 1")
    assert runs()[-1] == ("after = 1", "ok")


def source_is_left_out(name: str) -> bool:
    """Say whether a choice of sources leaves it out."""
    [reason] = [reason for source, _, reason in _gpumem.source_states() if source == name]
    return "left out by `%gpumem use`" in reason


@pytest.mark.parametrize(
    "body",
    [
        "get_ipython().run_line_magic('gpumem', 'reset')",
        "get_ipython().run_line_magic('unload_ext', 'gpumem')",
        "get_ipython().run_line_magic('reload_ext', 'gpumem')",
        "1 / 0",
    ],
)
def test_a_source_of_one_cell_is_that_cells_however_it_ends(shell: Shell, body: str) -> None:
    shell.run(f"%%gpumem --source sim\n{body}")
    assert source_is_left_out("host") is False


class Gone(io.StringIO):
    """An output that takes nothing any more."""

    def write(self, _: str) -> int:
        raise OSError("gone")


@pytest.mark.parametrize(
    "lose", ["sys.stdout = io.StringIO(); sys.stdout.close()", "sys.stdout = Gone()"]
)
def test_a_line_that_cannot_be_shown_does_not_stop_the_recording(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lose: str
) -> None:
    shell.user_ns["Gone"] = Gone
    # As in a terminal, where display data is printed.
    with monkeypatch.context() as in_terminal:
        in_terminal.setattr(type(shell.display_pub), "publish", DisplayPublisher.publish)
        shell.run(f"%%gpumem\nimport io, sys\n{lose}")
    shell.run("%%gpumem\nx = 1")
    assert [status for _, status in runs()] == ["ok", "ok"]
    first, note = shell.lines[-1].splitlines()
    assert first.startswith("kept ")
    reason = "OSError: gone" if "Gone" in lose else "ValueError: I/O operation on closed file"
    assert note == (
        f"! a line before this one was not shown: {reason}; `%gpumem_report` has its run"
    )
    shell.run("%%gpumem\nx = 1")
    assert len(shell.lines[-1].splitlines()) == 1
    assert caplog.records == []


def status(shell: Shell) -> str:
    shell.run("%gpumem status")
    return shell.lines[-1]


def fails_alone(shell: Shell, caplog: pytest.LogCaptureFixture, words: str) -> None:
    first = shell.run("%%gpumem\n1 / 0")
    assert (first.last_type, first.stderr) == ("ZeroDivisionError", "")
    n_runs = len(runs())
    for _ in range(3):
        outcome = shell.run("%%gpumem\n2")
        assert (outcome.result, outcome.last_type) == ("2", None)
    assert len(runs()) == n_runs
    (record,) = caplog.records
    assert record.name == "gpumem"
    assert record.getMessage().startswith(f"recording stopped: {words}")
    assert "/issues" in record.getMessage()


@pytest.mark.usefixtures("ctrl_c")
def test_a_ctrl_c_that_ends_a_callback_ends_the_cell(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpumem.magics.cell_options", fail_with(KeyboardInterrupt()))
    outcome = shell.run("%%gpumem\n2")
    assert isinstance(outcome.raw.error_in_exec, KeyboardInterrupt)
    assert outcome.result == "None"
    monkeypatch.undo()
    shell.run("%%gpumem\n3")
    assert runs() == [("3", "ok")]


def test_a_source_left_out_in_a_run_leaves_its_levels_unknown(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    shell.run("from gpumem import sim\nsim.use()\n%gpumem use sim")
    for _ in range(2):
        shell.run("%%gpumem\nget_ipython().run_line_magic('gpumem', 'use host')")
        shell.run("%gpumem use sim")
    rows = [row for row in gpumem.report().runs if row["device"] == "sim:0"]
    assert [row["allocated_after_bytes"] for row in rows] == [None, None]
    assert [row["allocated_before_bytes"] for row in rows] == [0, 0]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "sim does not answer for sim:0: it stopped answering inside a run",
        "the driver does not answer for sim:0: it stopped answering inside a run",
    ]


def test_a_cell_in_another_thread_is_recorded(shell: Shell) -> None:
    thread = threading.Thread(target=shell.run_cell, args=("%%gpumem -q\nx = 1",))
    thread.start()
    thread.join()
    assert runs() == [("x = 1", "ok")]


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_inside_a_cell_leaves_the_run_to_the_parent(shell: Shell) -> None:
    shell.run(
        "%%gpumem\n"
        "import os, gpumem\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    gpumem.mark()\n"
        "    os._exit(5)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    )
    assert shell.user_ns["code"] == 5
    assert [status for _, status in runs()] == ["ok"]
