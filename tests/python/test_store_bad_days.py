"""What a disk can do to a session that is kept: cells run on, and one line says what is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.played import command, play
from tests.python.test_store import GROW, KILL, end, findings, folder, kept, said_by
from tests.support.programs import run_python, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Shell

__all__ = ["folder", "kept"]


# Every lock of a file fails with ENOLCK, as without a server for locks, in the program that runs
# after this one. It is not that program's own filter: beside one of those, nothing is kept.
NO_LOCKS = """
import ctypes, errno, platform, struct
flock, fcntl = {"x86_64": (73, 72), "aarch64": (32, 25)}[platform.machine()]
load, equal, answer = 0x20, 0x15, 0x06
refuse, allow = 0x00050000 | errno.ENOLCK, 0x7FFF0000
steps = [
    (load, 0, 0, 0), (equal, 5, 0, flock), (equal, 0, 3, fcntl), (load, 0, 0, 24),
    (equal, 2, 0, 6), (equal, 1, 0, 37), (answer, 0, 0, allow), (answer, 0, 0, refuse),
]
filters = b"".join(struct.pack("HBBI", *step) for step in steps)
class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("filters", ctypes.c_char_p)]
libc, program = ctypes.CDLL(None, use_errno=True), Program(len(steps), filters)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
"""


def play_without_locks(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program under that filter."""
    starter = NO_LOCKS + "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    return run_python("-c", starter, *command(folder, program))


def trouble() -> str | None:
    return _gpumem._store_status()[1]


def said_after(shell: Shell, n_lines: int) -> list[str]:
    """Return the messages about the store after the first ``n_lines`` lines."""
    lines = "\n".join(shell.lines[n_lines:]).splitlines()
    return [line for line in lines if "this session" in line]


def check_said_once(shell: Shell, reason: str) -> None:
    """Run cells while there is trouble; exactly one line says so, and the status does."""
    n_lines = len(shell.lines)
    assert shell.run(GROW).errors == ["None", "None"]
    until(lambda: trouble() is not None)
    for _ in range(3):
        shell.run(GROW)
    (line,) = said_after(shell, n_lines)
    assert reason in line
    assert line.startswith("! this session is not kept: ")
    assert line.endswith("; recording goes on")
    assert reason in said_by(shell, "%gpumem status")


def kept_in(folder: Path) -> list[dict[str, Any]]:
    """Return the sessions of a folder, as another process sees them."""
    program = "import json; print(_gpumem._sessions_json())"
    sessions: list[dict[str, Any]] = json.loads(play(folder, program).stdout.splitlines()[-1])
    return sessions


def session_file(folder: Path) -> Path:
    (path,) = folder.glob("*.gpumem")
    return path


def test_a_folder_that_cannot_be_made(kept: Shell, folder: Path) -> None:
    folder.write_text("a file, not a folder")
    check_said_once(kept, f"the folder {folder} cannot be made")
    assert len(gpumem.report().runs) == 8
    # When the disk is well again, the whole session is kept.
    folder.unlink()
    until(lambda: trouble() is None)
    kept.run(GROW)
    end()
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.ending) == (5, "in_order")


def test_a_folder_that_vanishes(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    shutil.rmtree(folder)
    check_said_once(kept, "its file was deleted")
    end()
    # Deleted sessions do not come back.
    assert not folder.exists()
    kept.run(GROW)
    end()
    assert [session.n_runs for session in gpumem.sessions()] == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="locks as Unix has them")
def test_a_file_that_is_locked_is_written_on(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX);"
        "print(flush=True); sys.stdin.read()"
    )
    locking = [sys.executable, "-c", program, str(session_file(folder))]
    with subprocess.Popen(locking, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        kept.run(GROW)
        assert trouble() is None
        other.communicate()
    end()
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.damage) == (2, None)


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"no recording any more")


def appended_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"a line of somebody else\n")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"a file of somebody else")
    other.replace(path)


@pytest.mark.parametrize("change", [overwritten, appended_to, cut, emptied, replaced])
def test_a_file_that_somebody_else_changes(
    kept: Shell, folder: Path, change: Callable[[Path], None]
) -> None:
    for _ in range(3):
        kept.run(GROW)
    path = session_file(folder)
    n_lines = len(kept.lines)
    change(path)
    left = path.read_bytes()
    for _ in range(4):
        kept.run(GROW)
    recorded = gpumem.recording()
    end()
    # Nothing of the other program's is lost, and no run of ours.
    assert path.read_bytes() == left
    (line,) = said_after(kept, n_lines)
    assert f"this session goes on in {path.with_suffix('')}-2.gpumem" in line
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.damage, session.ending) == (7, None, "in_order")
    assert findings(gpumem.open_session()) == findings(recorded)


def test_a_file_that_is_moved_is_written_where_it_is(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    moved = session_file(folder).rename(folder / "moved")
    kept.run(GROW)
    assert trouble() is None
    end()
    assert [it.name for it in folder.glob("*.gpumem")] == []
    assert "2 runs" in repr(gpumem.load(moved))


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors as Unix has them")
def test_code_that_closes_every_descriptor(folder: Path) -> None:
    mine = folder.with_name("mine")
    played = play(
        folder,
        f"""
        run("%%gpumem\\n1")
        run('''%%gpumem
        os.closerange(3, 200)
        mine = [open({str(mine)!r}, "wb") for _ in range(100)]
        ''')
        for _ in range(3): run("%%gpumem\\n1")
        run("assert [os.fstat(it.fileno()).st_size for it in mine] == [0] * 100")
        run("for it in mine: it.close()")
        run("%%gpumem\\n1")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert played.returncode == -signal.SIGKILL, played.stderr
    assert "Error" not in played.stdout + played.stderr
    (session,) = kept_in(folder)
    assert (session["n_runs"], session["damage"]) == (6, None)


@pytest.fixture
def closed(kept: Shell, folder: Path) -> tuple[Path, gpumem.types.Recording]:
    """Return the file of a session that is over, and what was recorded in it."""
    for _ in range(12):
        kept.run(GROW)
    recorded = gpumem.recording()
    end()
    return session_file(folder), recorded


@pytest.mark.parametrize("filling", [b"\0", b"x", b"\xa6"])
def test_a_file_whose_beginning_is_gone(
    closed: tuple[Path, gpumem.types.Recording], filling: bytes
) -> None:
    path, recorded = closed
    whole = path.read_bytes()
    path.write_bytes(filling * 4096 + whole[4096:])
    (session,) = gpumem.sessions()
    assert "the session's file was damaged" in str(session.damage)
    # Its last frames say again what it is.
    assert session.ending == "in_order"
    renamed = path.with_name("renamed")
    shutil.copy(path, renamed)
    stored = gpumem.open_session()
    assert len(gpumem.report(stored).runs) > len(gpumem.report(recorded).runs) / 2
    assert gpumem.report(stored).runs[-1]["device"] == gpumem.report(recorded).runs[-1]["device"]
    for name in [path, *([renamed] if filling != b"x" else [])]:
        with pytest.warns(gpumem.RecordingWarning, match="was damaged"):
            loaded = gpumem.load(name)
        assert gpumem.report(loaded).runs == gpumem.report(stored).runs


def test_of_a_file_that_was_cut_what_is_left_is_read(folder: Path) -> None:
    play(folder, "for _ in range(12): run('%%gpumem\\n1')")
    path = session_file(folder)
    os.truncate(path, path.stat().st_size * 3 // 4)
    (session,) = kept_in(folder)
    assert session["ending"] == "lost"
    assert 0 < session["n_runs"] < 12
    with pytest.warns(gpumem.RecordingWarning, match="ends inside the frame at byte"):
        loaded = gpumem.load(path)
    assert len(gpumem.report(loaded).runs) == session["n_runs"]


def test_every_flipped_bit_is_noticed(closed: tuple[Path, gpumem.types.Recording]) -> None:
    path, recorded = closed
    whole = path.read_bytes()
    at_last = whole.rindex(b"\xa6finish") - 8
    last_length = range(at_last, at_last + 4)
    numbers = random.Random(16)  # noqa: S311 (no secret)
    for _ in range(400):
        flipped = bytearray(whole)
        at = numbers.randrange(len(whole))
        flipped[at] ^= 1 << numbers.randrange(8)
        path.write_bytes(flipped)
        (session,) = gpumem.sessions()
        # The last frame may seem to be longer, and looks like one that was cut: no run is lost.
        is_cut = at in last_length and session.n_runs == 12
        assert session.damage is not None or session.ending != "in_order" or is_cut, at
    path.write_bytes(whole)
    assert findings(gpumem.open_session()) == findings(recorded)


@pytest.mark.skipif(sys.platform != "linux", reason="system calls as Linux filters them")
@pytest.mark.parametrize("ending", ["", KILL])
def test_a_file_system_without_locks(folder: Path, ending: str) -> None:
    played = play_without_locks(folder, f"run('%%gpumem\\n1'); run('%%gpumem\\n1'); {ending}")
    assert played.returncode == (256 - signal.SIGKILL if ending else 0), played.stderr
    (session,) = kept_in(folder)
    assert (session["n_runs"], session["damage"]) == (2, None)
    assert session["ending"] == ("lost" if ending else "in_order")


def test_two_kernels_at_once(kept: Shell, folder: Path) -> None:
    program = "for n in range(20): run(f'%%gpumem -l other{n}\\n1')"
    with subprocess.Popen(command(folder, program), stdout=subprocess.DEVNULL) as other:
        while other.poll() is None:
            kept.run("%%gpumem -l own\n1")
    n_own = gpumem.recording()._position()[1]
    end()
    sessions = gpumem.sessions()
    assert {it.damage for it in sessions} == {None}
    assert sorted(it.n_runs for it in sessions) == sorted([20, n_own])


@pytest.mark.skipif(sys.platform != "linux", reason="a disk of a few pages is made there only")
def test_a_disk_that_fills(kept: Shell, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nobody may mount a disk here")
    try:
        kept.run(f"%config GpuMem.store = {str(disk)!r}")
        kept.run(GROW)
        filled = disk / "filled"
        with contextlib.suppress(OSError), filled.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        # A page that is there has room for some.
        while trouble() is None:
            kept.run(GROW)
        n_runs = gpumem.recording()._position()[1]
        assert "the disk is full" in said_by(kept, "%gpumem status")
        filled.unlink()
        until(lambda: trouble() is None)
        end()
        (session,) = gpumem.sessions()
        assert (session.n_runs, session.damage) == (n_runs, None)
    finally:
        kept.run("%config GpuMem.store = False")
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_session_from_the_future_is_the_oldest(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    end()
    early = session_file(folder)
    # The clock was wrong then.
    late = early.rename(folder / f"{int(time.time() * 1000) + 10**9:013}-{early.name[14:]}")
    kept.run(GROW)
    kept.run(GROW)
    end()
    assert [session.n_runs for session in gpumem.sessions()] == [2, 1]
    assert len(gpumem.report(gpumem.open_session("last")).runs) == 4
    assert late.exists()
