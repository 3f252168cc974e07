"""What a disk can do to a session that is kept: cells run on, and one line says what is lost."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem

from tests.python.played import command
from tests.python.test_store import GROW, end, findings, folder, kept, said_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.python.conftest import Shell

__all__ = ["folder", "kept"]

PATIENCE_SECONDS = 30


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; the store's thread works beside the cells."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.01)


def trouble() -> str | None:
    return _gpumem._store_status()[1]


def said_after(shell: Shell, n_lines: int) -> list[str]:
    """Return what was said of the store since so many lines."""
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


def session_file(folder: Path) -> Path:
    (path,) = (it for it in folder.glob("*.sqlite3") if "corrupt" not in it.name)
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
    # What somebody deleted does not come back.
    assert not folder.exists()
    kept.run(GROW)
    end()
    assert [session.n_runs for session in gpumem.sessions()] == [1]


def test_a_file_that_is_locked(kept: Shell, folder: Path) -> None:
    kept.run(GROW)
    # Another process: in one, two copies of SQLite do not see each other's locks.
    program = (
        "import sqlite3, sys; other = sqlite3.connect(sys.argv[1]);"
        "other.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    locking = [sys.executable, "-c", program, str(session_file(folder))]
    with subprocess.Popen(locking, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        check_said_once(kept, "another process has locked the file")
        other.communicate()
    until(lambda: trouble() is None)
    end()
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.damage) == (5, None)


def test_a_file_that_is_overwritten_while_it_is_written(kept: Shell, folder: Path) -> None:
    for _ in range(3):
        kept.run(GROW)
    path = session_file(folder)
    n_lines = len(kept.lines)
    overwrite = "import sys; open(sys.argv[1], 'r+b').write(b'no database any more')"
    subprocess.run([sys.executable, "-c", overwrite, str(path)], check=True)
    kept.run(GROW)
    until(lambda: any(folder.glob("*-corrupt-*")))
    for _ in range(3):
        kept.run(GROW)
    (aside,) = folder.glob("*-corrupt-*.sqlite3")
    (line,) = said_after(kept, n_lines)
    assert "was damaged" in line
    assert str(aside) in line
    recorded = gpumem.recording()
    end()
    (session,) = (it for it in gpumem.sessions() if it.damage is None)
    assert session.n_runs == 7
    assert findings(gpumem.open_session(session.id)) == findings(recorded)


@pytest.fixture
def closed(kept: Shell, folder: Path) -> Iterator[tuple[Path, gpumem.Recording]]:
    """Return the file of a session that is over, and what was recorded in it."""
    for _ in range(12):
        kept.run(GROW)
    recorded = gpumem.recording()
    end()
    path = session_file(folder)
    yield path, recorded
    path.unlink(missing_ok=True)


def test_a_file_that_is_no_database_is_put_aside(
    closed: tuple[Path, gpumem.Recording], folder: Path
) -> None:
    path, _ = closed
    whole = path.read_bytes()
    path.write_bytes(b"x" * 4096 + whole[4096:])
    (session,) = gpumem.sessions()
    assert session.damage is not None
    (aside,) = folder.glob("*-corrupt-*.sqlite3")
    assert aside.read_bytes()[4096:] == whole[4096:]
    assert not path.exists()


def test_of_a_damaged_file_what_is_whole_is_read(closed: tuple[Path, gpumem.Recording]) -> None:
    path, recorded = closed
    whole = bytearray(path.read_bytes())
    # A page in the middle.
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 4096] = bytes(4096)
    path.write_bytes(whole)
    (session,) = gpumem.sessions()
    assert session.damage is not None
    stored = gpumem.open_session()
    assert "the session's file was damaged" in gpumem.report(stored).text()
    assert 0 < len(gpumem.report(stored).runs) <= len(gpumem.report(recorded).runs)


def test_every_flipped_bit_in_a_row_is_noticed(closed: tuple[Path, gpumem.Recording]) -> None:
    path, recorded = closed
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT kind, bytes FROM frames").fetchall()
    whole = path.read_bytes()
    numbers = random.Random(16)  # noqa: S311 (no secret)
    n_flipped = 0
    while n_flipped < 400:
        payload: bytes = numbers.choice(rows)[1]
        at = numbers.randrange(len(payload))
        piece = payload[max(0, at - 16) : at + 16]
        # A payload is in one piece, or in pages of its own.
        if whole.count(piece) != 1:
            continue
        byte = whole.index(piece) + min(at, 16)
        flipped = bytearray(whole)
        flipped[byte] ^= 1 << numbers.randrange(8)
        path.write_bytes(flipped)
        (session,) = gpumem.sessions()
        assert session.damage is not None, (byte, at)
        n_flipped += 1
    path.write_bytes(whole)
    assert findings(gpumem.open_session()) == findings(recorded)


def test_a_folder_of_another_machine(kept: Shell, folder: Path) -> None:
    _gpumem._testing.store_on_network(True)  # noqa: FBT003 (as a mount would say it)
    try:
        kept.run(GROW)
        kept.run(GROW)
        # Nothing is shared with other processes: there is no index to map.
        assert not list(folder.glob("*-shm"))
        assert list(folder.glob("*.sqlite3"))
        end()
    finally:
        _gpumem._testing.store_on_network(False)  # noqa: FBT003 (likewise)
    (session,) = gpumem.sessions()
    assert (session.n_runs, session.damage) == (2, None)


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
        check_said_once(kept, "the disk is full")
        filled.unlink()
        until(lambda: trouble() is None)
        end()
        (session,) = gpumem.sessions()
        assert (session.n_runs, session.damage) == (5, None)
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
