"""Sessions on the disk: what is kept of each, who can read it, what the next kernel says."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.frames import of_kind
from tests.python.played import command, play

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

KILL = "os.kill(os.getpid(), signal.SIGKILL)"
GROW = "%%gpumem\nlosses.append(sim.tensor(300 << 20))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def kept(shell: Shell, folder: Path) -> Shell:
    """Return a shell whose sessions are kept in a folder, with a simulated device."""
    shell.run(f"%config GpuMem.store = {str(folder)!r}")
    shell.run("from gpumem import sim; sim.use(8 << 30); losses = []")
    shell.run("%gpumem use sim")
    return shell


def end() -> None:
    """End the session, as the end of a kernel does; the next one begins."""
    _gpumem._close_store()
    _gpumem.reset()


def said_by(shell: Shell, cell: str) -> str:
    n_lines = len(shell.lines)
    outcome = shell.run(cell)
    return "\n".join([*shell.lines[n_lines:], outcome.stdout + outcome.stderr])


def findings(recording: gpumem.types.Recording) -> list[Any]:
    found: list[Any] = json.loads(gpumem.report(recording).to_json())["findings"]
    return found


def test_a_session_is_kept_as_it_was_recorded(kept: Shell) -> None:
    for _ in range(10):
        kept.run(GROW)
    recorded = gpumem.recording()
    end()
    (session,) = gpumem.sessions()
    assert (session.ending, session.n_runs, session.damage) == ("in_order", 10, None)
    assert "leaks 300 MiB a run" in str(session.worst)
    shown = gpumem.sessions()._repr_html_()
    assert shown.count("<tr>") == 2
    assert session.id in shown
    assert "leaks 300 MiB a run" in shown
    stored = gpumem.open_session(session.id)
    assert findings(stored) == findings(recorded)
    assert gpumem.report(stored).runs == gpumem.report(recorded).runs


def test_a_session_without_runs_leaves_nothing(kept: Shell, folder: Path) -> None:
    kept.run("%gpumem status")
    end()
    assert not folder.exists()
    assert gpumem.sessions() == []
    assert "no sessions" in gpumem.sessions()._repr_html_()
    assert said_by(kept, "%gpumem sessions").startswith(f"no session is kept in {folder}")


def test_nobody_else_can_read_it(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    said = said_by(kept, "%gpumem status")
    assert f"kept in {folder}" in said
    modes = [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()]
    assert set(modes) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_nothing_is_kept_if_the_user_says_so(kept: Shell, folder: Path) -> None:
    kept.run("%config GpuMem.store = False")
    kept.run(GROW)
    assert "not kept on the disk" in said_by(kept, "%gpumem status")
    end()
    assert not folder.exists()


def test_the_environment_turns_everything_off(folder: Path) -> None:
    played = play(
        folder,
        """
        run("%gpumem on")
        run("%%gpumem\\nprint('it ran')")
        run("with gpumem.record('block'): gpumem.mark()\\nfor _ in gpumem.steps([1]): pass")
        run("%gpumem_report")
        print(gpumem.recording()._counts())
        """,
        GPUMEM_DISABLE="1",
    )
    lines = played.stdout.splitlines()
    off = "gpumem is off: the environment variable GPUMEM_DISABLE is set"
    assert lines == [off, "it ran", off, "0 runs of 0 cells"], played.stderr
    assert not folder.exists()


def test_a_killed_kernel_leaves_its_last_second(kept: Shell, folder: Path) -> None:
    played = play(
        folder,
        f"""
        run("sim.use(8 << 30); losses = []")
        run("%gpumem use host sim")
        run("%%gpumem\\nlosses.append(sim.tensor(7 << 30))")
        run("%%gpumem\\ntime.sleep(1.6); {KILL}")
        """,
    )
    assert played.returncode == -signal.SIGKILL, played.stderr
    (session,) = gpumem.sessions()
    assert (session.ending, session.n_runs) == ("lost", 2)
    last = session.last_run
    assert last is not None
    assert (last.execution_count, last.is_open, last.device) == (4, True, "sim:0")
    recording = gpumem.open_session("last")
    (run,) = [run for run in of_kind(recording, "run") if run.get("ended_nanos") is None]
    samples = [it for it in of_kind(recording, "samples") if it["run"] == run["idx"]]
    until = max(run["started_nanos"] + 0, *(sum(it["at_steps"]) for it in samples))
    # The last second may be missing, no more.
    assert until - run["started_nanos"] > 0.6e9
    assert "the kernel died in In [4]" in gpumem.report(recording).text()
    assert "died in In [4]" in said_by(kept, "%gpumem sessions")


def test_a_killed_kernel_leaves_who_held_memory_when_it_ran_out(kept: Shell, folder: Path) -> None:
    played = play(
        folder,
        f"""
        run("sim.use(8 << 30); losses = []")
        run("%gpumem use sim")
        run('''%%gpumem
        losses.append(sim.tensor(7 << 30))
        try:
            sim.tensor(4 << 30)
        except sim.OutOfMemoryError:
            time.sleep(1.2)
        {KILL}''')
        """,
    )
    assert played.returncode == -signal.SIGKILL, played.stderr
    (session,) = gpumem.sessions()
    assert session.ending == "out_of_memory"
    (finding,) = [it for it in findings(gpumem.open_session()) if it["kind"] == "out_of_memory"]
    assert finding["details"]["wanted_bytes"] == 4 << 30
    assert "losses" in json.dumps(finding["details"]["holders"])
    assert "out of memory in In [3]" in said_by(kept, "%gpumem sessions")


def test_the_next_kernel_says_that_the_last_one_died(folder: Path) -> None:
    environment = {"JPY_SESSION_NAME": "/srv/train.ipynb"}
    program = (
        f'run("sim.use(8 << 30)"); run("%gpumem use sim"); run("%%gpumem\\ntime.sleep(1); {KILL}")'
    )
    died = play(folder, program, **environment)
    assert died.returncode == -signal.SIGKILL, died.stderr
    said = play(folder, "", **environment).stdout
    words = " ".join(said.split())
    assert words.startswith("the last session of train.ipynb died"), said
    assert "in In [3]" in words
    assert words.endswith("`%gpumem_report --session last`")
    # Nobody else hears of it.
    assert play(folder, "", JPY_SESSION_NAME="/srv/other.ipynb").stdout == ""


def test_nothing_is_said_of_a_kernel_that_ended_in_order(folder: Path) -> None:
    play(folder, 'run("%%gpumem\\n1")')
    assert play(folder, "").stdout == ""


def test_out_of_memory_is_reported_after_a_restart(folder: Path) -> None:
    play(
        folder,
        """
        run("sim.use(8 << 30)")
        run("%gpumem use sim")
        run("%%gpumem\\nsim.tensor(9 << 30)")
        """,
    )
    said = " ".join(play(folder, "").stdout.split())
    assert "ran out of memory" in said
    assert "in In [3]" in said


def test_a_baseline_survives_its_kernel(kept: Shell) -> None:
    for _ in range(10):
        kept.run(GROW)
    kept.run("%gpumem baseline before")
    end()
    kept.run("losses.clear()")
    for _ in range(10):
        kept.run(GROW)
        kept.run("losses.clear()")
    said = said_by(kept, "%gpumem_report --compare before --text")
    assert said.startswith("Against before:")
    assert "✓ fixed" in said


def test_a_session_is_compared_with_another_one(kept: Shell) -> None:
    for _ in range(10):
        kept.run(GROW)
    end()
    kept.run("losses.clear()")
    for _ in range(10):
        kept.run(GROW)
    (session,) = gpumem.sessions()
    assert "◆ same" in said_by(kept, f"%gpumem_report --compare {session.id} --text")
    said = said_by(kept, f"%gpumem_report --session last --compare {session.id} --text")
    assert "no difference" in said


def test_a_session_that_is_not_there_is_named(kept: Shell) -> None:
    said = said_by(kept, "%gpumem_report --session 1234")
    assert "%gpumem_report: no session is kept in" in said
    kept.run(GROW)
    end()
    assert "no session '1234' in" in said_by(kept, "%gpumem_report --session 1234")
    assert "--all belongs to sessions" in said_by(kept, "%gpumem status --all")
    with pytest.raises(KeyError):
        gpumem.open_session("1234")


def test_old_sessions_make_room_but_no_baseline_does(kept: Shell, folder: Path) -> None:
    kept.run("%%gpumem -l first\n1")
    kept.run("%gpumem baseline before")
    for _ in range(53):
        end()
        kept.run("%%gpumem\n1")
    end()
    assert len(list(folder.glob("*.gpumem"))) == 50
    said = said_by(kept, "%gpumem sessions")
    assert "… and 30 more: %gpumem sessions --all" in said
    assert len(said_by(kept, "%gpumem sessions --all").splitlines()) == 51
    assert "Against before" in said_by(kept, "%gpumem_report --compare before --text")


def test_a_setting_that_changes_takes_all_runs_along(kept: Shell, tmp_path: Path) -> None:
    kept.run(GROW)
    kept.run(f"%config GpuMem.store = {str(tmp_path / 'other')!r}")
    kept.run(GROW)
    end()
    (session,) = gpumem.sessions()
    assert session.n_runs == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_writes_nothing(kept: Shell) -> None:
    kept.run(GROW)
    kept.run(
        "import os\n"
        "if (child := os.fork()) == 0:\n"
        "    gpumem_on = get_ipython().run_line_magic('gpumem', 'on')\n"
        "    get_ipython().run_cell('%%gpumem\\n1')\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    kept.run(GROW)
    end()
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.damage, session.ending) == (2, None, "in_order")


def test_a_session_that_goes_on_elsewhere_is_running(folder: Path, kept: Shell) -> None:
    program = "run('%%gpumem\\n1'); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        command(folder, program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            pass
        kept.run(GROW)
        (session,) = gpumem.sessions()
        process.communicate()
    assert (session.ending, session.n_runs) == ("running", 1)
    end()
    assert {it.ending for it in gpumem.sessions()} == {"in_order"}
