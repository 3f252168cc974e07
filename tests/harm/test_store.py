"""What others do to folders and files of sessions: theirs is never deleted, ours never lost."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.python.frames import of_kind
from tests.python.played import command, play
from tests.support.reports import recording_in

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files as Linux has them")

KILL = "os.kill(os.getpid(), signal.SIGKILL)"
N_SESSIONS = 50
"""How many sessions are kept."""
MANY_SESSIONS = """
for n in range({n}):
    run("%%gpumem\\n1")
    _gpumem._close_store()
    _gpumem.reset()
"""
ONE_SESSION = MANY_SESSIONS.format(n=1)

SESSION = """
run("sim.use(8 << 30); leak = []")
run("%gpumem use sim")
for n in range({n}): run(f"%%gpumem -l run{{n}}\\nleak.append(sim.tensor(20 << 20))")
"""

# A reader that may neither run nor grow for long.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
import gpumem
for path in sys.argv[1:]:
    try:
        gpumem.load(path)
    except gpumem.GpuMemError as error:
        print(error)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
MOST_MIB = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return tmp_path / "kept"


def played(folder: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Play a program to its end, which it must reach unless it kills itself."""
    found = play(folder, program, **environment)
    assert found.returncode == (-signal.SIGKILL if KILL in program else 0), found.stderr
    return found


def loaded(*paths: Path) -> str:
    """Return what is said of files that are read under limits."""
    reader = [sys.executable, "-W", "ignore", "-c", LIMITED, *map(str, paths)]
    found = subprocess.run(reader, check=False, capture_output=True, text=True, timeout=90)
    assert found.returncode == 0, found.stderr[-2000:]
    assert int(found.stdout.splitlines()[-1]) < MOST_MIB
    return found.stdout


def the_session(folder: Path) -> Path:
    (path,) = folder.glob("*.gpumem")
    return path


def tree(folder: Path) -> dict[str, Any]:
    """Return everything that is in a folder, without following a link."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        kind = stat.S_IFMT(path.lstat().st_mode)
        content = path.read_bytes() if kind == stat.S_IFREG else None
        found[str(path.relative_to(folder))] = (kind, content)
    return found


def look_alikes(folder: Path, elsewhere: Path) -> set[str]:
    """Put what looks like the oldest sessions, but is not, beside them; return the names."""
    before = set(tree(folder))
    sample = min(folder.glob("*-*.gpumem"))
    old = "0000000000001"

    def name(n: int) -> Path:
        return folder / f"{old}-{n:08x}-00000000.gpumem"

    # Names that differ by one character.
    _, session_id, notebook = sample.stem.split("-")
    for like in [
        f"{old[1:]}-{session_id}-{notebook}.gpumem",
        f"{old}-{session_id.upper()}x-{notebook}.gpumem",
        f"{old}-{session_id}-{notebook}-1.gpumem",
        f"{old}-{session_id}-{notebook}-02.gpumem",
        f"{old}-{session_id}-{notebook}.gpumem2",
        f"{old}-{session_id}-{notebook} copy.gpumem",
        f"{old}-{session_id}-{notebook}.sqlite3",
        f"{sample.name}.bak",
        "2024-01-15.gpumem",
        ".gpumem-1-1.tmp2",
    ]:
        shutil.copy(sample, folder / like)
    # The right name, and what no session of that name has in it.
    contents = [
        b"",
        b"text",
        b"\0" * 4096,
        sample.read_bytes(),
        gpumem.types.Recording.to_bytes(gpumem.recording()),
    ]
    for n, content in enumerate(contents):
        name(n).write_bytes(content)
    with contextlib.closing(sqlite3.connect(name(10))) as database:
        database.execute("CREATE TABLE frames (a)")
    # Links, folders, pipes and sockets with the right name.
    (elsewhere / "thesis.tex").write_text("years of work")
    moved = elsewhere / sample.name
    shutil.copy(sample, moved)
    name(20).symlink_to(elsewhere / "thesis.tex")
    name(21).symlink_to(moved)
    name(22).mkdir()
    (name(22) / "thesis.tex").write_text("years of work")
    os.mkfifo(name(23))
    os.mknod(name(24), stat.S_IFSOCK | 0o600)
    # Folders that look like those of child processes.
    for like in [
        "imaging.processes",
        "0123456.processes",
        "ABCDEF01.processes",
        "abcdef01.processes",
    ]:
        (folder / like).mkdir()
        (folder / like / "thesis.tex").write_text("years of work")
        shutil.copy(sample, folder / like / "123-456.gpumem")
    (folder / "abcdef02.processes").symlink_to(elsewhere)
    shutil.copy(sample, elsewhere / "123-456.gpumem")
    (folder / "abcdef03.processes").write_text("a file")
    # Not finished by a process that is gone, as far as the name says.
    (folder / ".gpumem-999999999-0.tmp").write_bytes(b"text")
    return set(tree(folder)) - before


def test_only_what_gpumem_wrote_is_deleted(folder: Path, tmp_path: Path) -> None:
    played(folder, MANY_SESSIONS.format(n=N_SESSIONS + 2))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    alike = look_alikes(folder, elsewhere)
    own = {path.name for path in folder.glob("*.gpumem")} - alike
    assert len(own) == N_SESSIONS
    if os.geteuid() == 0:
        somebody_elses = min(own)
        os.chown(folder / somebody_elses, 12345, 12345)
        own.remove(somebody_elses)
        alike.add(somebody_elses)
    before, there = tree(folder), tree(elsewhere)
    played(folder, MANY_SESSIONS.format(n=3))
    after = tree(folder)
    assert {name: after.get(name) for name in alike} == {name: before[name] for name in alike}
    assert tree(elsewhere) == there
    # Of its own the oldest made room.
    left = {path.name for path in folder.glob("*.gpumem")} - alike
    assert len(left) == N_SESSIONS
    assert len(own - left) == 3 - (os.geteuid() == 0)


def test_children_are_deleted_one_by_one(folder: Path) -> None:
    forks = """
    run('''%%gpumem
    import os, time
    if (child := os.fork()) == 0:
        gpumem.worker()
        time.sleep(0.5)
        os._exit(0)
    os.waitpid(child, 0)
    ''')
    """
    played(folder, forks)
    (children,) = folder.glob("*.processes")
    (child,) = children.glob("*.gpumem")
    own = {path.name for path in children.iterdir()}
    (children / "thesis.tex").write_text("years of work")
    shutil.copy(child, children / "1-2.gpumem")
    (children / "1-2.exit").write_text("years of work")
    # The session's user deletes it; the next session deletes its children.
    the_session(folder).unlink()
    played(folder, ONE_SESSION)
    assert own >= {child.name}
    assert {path.name for path in children.iterdir()} - {".gpumem-folder"} == {
        "thesis.tex",
        "1-2.gpumem",
        "1-2.exit",
    }
    for path in children.iterdir():
        if path.name != ".gpumem-folder":
            path.unlink()
    played(folder, ONE_SESSION)
    assert not children.exists()


def test_in_a_folder_with_files_of_ones_own_nothing_is_deleted(folder: Path) -> None:
    folder.mkdir()
    for month in range(1, 5):
        for day in range(1, 16):
            path = folder / f"2024-{month:02d}-{day:02d}.sqlite3"
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("CREATE TABLE measurements (x)")
    (folder / "imaging.processes").mkdir()
    (folder / "imaging.processes" / "thesis.tex").write_text("years of work")
    before = tree(folder)
    played(folder, MANY_SESSIONS.format(n=N_SESSIONS + 3))
    after = tree(folder)
    assert {name: after.get(name) for name in before} == before
    assert len(list(folder.glob("*.gpumem"))) == N_SESSIONS + 3


WORKER = """
import os, sys, pathlib
from gpumem import _worker_folders
os.setgroups([]); os.setgid(12345); os.setuid(12345)
home, place = pathlib.Path(sys.argv[1]), pathlib.Path(_worker_folders.new("abc")).parent
for n in range(30):
    (home / f"project{n}").mkdir(exist_ok=True)
    (home / f"project{n}" / "thesis.tex").write_text("years of work")
    os.utime(home / f"project{n}", (1e9 + n, 1e9 + n))
_worker_folders.new("abc")
found = place.stat()
print(len(list(home.glob("project*/thesis.tex"))), found.st_uid, oct(found.st_mode & 0o777))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
@pytest.mark.parametrize("attack", ["nothing", "link", "folder", "open folder", "file"])
def test_a_workers_folder_is_the_users_own(request: pytest.FixtureRequest, attack: str) -> None:
    # Other users cannot reach the folder of a test.
    base = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(base))
    base.chmod(0o755)
    temporary, home = base / "tmp", base / "home"
    temporary.mkdir()
    temporary.chmod(0o1777)
    home.mkdir()
    os.chown(home, 12345, 12345)
    guessed = temporary / "gpumem-workers-12345"
    if attack == "link":
        guessed.symlink_to(home)
        os.chown(guessed, 6666, 6666, follow_symlinks=False)
    elif attack == "file":
        guessed.write_text("")
    elif attack != "nothing":
        guessed.mkdir()
        guessed.chmod(0o777)
        owner = 6666 if attack == "folder" else 12345
        os.chown(guessed, owner, owner)
    environment = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
    environment |= {"TMPDIR": str(temporary), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    worker = [sys.executable, "-c", WORKER, str(home)]
    found = subprocess.run(worker, check=True, capture_output=True, text=True, env=environment)
    assert found.stdout.split() == ["30", "12345", "0o700"]


def test_old_folders_of_workers_are_deleted_one_by_one(tmp_path: Path) -> None:
    for n in range(3):
        played(tmp_path / f"cluster{n}", ONE_SESSION)
    (tmp_path / "cluster1" / "thesis.tex").write_text("years of work")
    (tmp_path / "mine").mkdir()
    shutil.copy(the_session(tmp_path / "cluster2"), tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "cluster2")
    for name in ["cluster0", "cluster1", "mine", "link", "none"]:
        gpumem._gpumem._delete_sessions(tmp_path / name)
    assert not (tmp_path / "cluster0").exists()
    assert [it.name for it in (tmp_path / "cluster1").glob("[!.]*")] == ["thesis.tex"]
    assert the_session(tmp_path / "cluster2")
    assert the_session(tmp_path / "mine")


OPENED = {
    "nothing": "pass",
    "opened": "open(path, 'rb').read()",
    "sqlite3": "import sqlite3\ntry: sqlite3.connect(path).execute('SELECT * FROM a')\n"
    "except sqlite3.Error: pass",
    "loaded": "gpumem.load(path)",
    "copied": "import shutil; shutil.copy(path, path + '.copy')",
    "locked": "import fcntl\nwith open(path, 'r+b') as it: fcntl.lockf(it, fcntl.LOCK_EX)",
}


@pytest.mark.parametrize("ending", ["", KILL])
@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED.keys())
def test_a_kernel_that_opens_its_own_session(folder: Path, opened: str, ending: str) -> None:
    reader = "import sys; open(sys.argv[1], 'rb').read()"
    program = f"""
    run("sim.use(8 << 30); leak = []")
    for n in range(5): run(f"%%gpumem -l early{{n}}\\nleak.append(sim.tensor(20 << 20))")
    import glob, subprocess
    path, = glob.glob(sys.argv[1] + "/*.gpumem")
    exec({opened!r})
    subprocess.run([sys.executable, "-c", {reader!r}, path], check=True)
    for n in range(5): run(f"%%gpumem -l late{{n}}\\nleak.append(sim.tensor(20 << 20))")
    {ending}
    """
    played(folder, program)
    runs = gpumem.report(gpumem.load(the_session(folder))).runs
    labels = [run["label"] for run in runs if run["device"] == "sim:0"]
    assert labels == [f"{when}{n}" for when in ("early", "late") for n in range(5)]


def test_two_readers_of_a_session_that_is_written(folder: Path) -> None:
    reader = """
    import glob
    while not glob.glob(sys.argv[1] + "/*.gpumem"): time.sleep(0.001)
    path, = glob.glob(sys.argv[1] + "/*.gpumem")
    n_runs = 0
    while n_runs < 50:
        found = gpumem.load(path)._position()[1]
        assert found >= n_runs, (found, n_runs)
        n_runs = found
    """
    readers = [
        subprocess.Popen(command(folder, reader), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    played(folder, SESSION.format(n=50) + "time.sleep(1)\n" + KILL)
    for process in readers:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, gpumem.types.Recording]:
    """Return the file of a session, and what it holds."""
    folder = tmp_path_factory.mktemp("recorded") / "kept"
    played(folder, SESSION.format(n=30))
    path = the_session(folder)
    return path.read_bytes(), recording_in(path)


def runs_by_idx(recording: gpumem.types.Recording) -> dict[int, Any]:
    return {run["idx"]: run for run in of_kind(recording, "run")}


@pytest.mark.parametrize("how", ["flipped", "cut", "overwritten"])
def test_what_is_sound_is_read(
    recorded: tuple[bytes, gpumem.types.Recording], tmp_path: Path, how: str
) -> None:
    whole, recording = recorded
    expected = runs_by_idx(recording)
    # Where each run's last frame lies in the file.
    places, at = {}, 0
    while at < len(whole):
        (n_bytes,) = struct.unpack("<I", whole[at : at + 4])
        payload = whole[at + 8 : at + 8 + n_bytes]
        if payload.startswith(b"\xa3run"):
            idx = payload[payload.index(b"\xa3idx") + 4]
            places[idx] = (at, at + 8 + n_bytes)
        at += 8 + n_bytes
    numbers = random.Random(f"{how} {os.getpid()}")  # noqa: S311 (no secret)
    path = tmp_path / "damaged.gpumem"
    for _ in range(20):
        damaged = bytearray(whole)
        at = numbers.randrange(len(whole))
        end = at + 1
        if how == "flipped":
            damaged[at] ^= 1 << numbers.randrange(8)
        elif how == "cut":
            del damaged[at:]
            end = len(whole)
        else:
            end = min(len(whole), at + numbers.randrange(1, 3000))
            damaged[at:end] = numbers.randbytes(end - at)
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gpumem.RecordingWarning)
            try:
                found = runs_by_idx(gpumem.load(path))
            except gpumem.GpuMemError:
                # Not even the first frame is left.
                assert how == "cut"
                assert at < min(places.values())[0]
                continue
        for idx, (start, stop) in places.items():
            if stop <= at or end <= start:
                same = {"started_nanos", "ended_nanos", "status", "label"}
                assert {key: found[idx].get(key) for key in same} == {
                    key: expected[idx].get(key) for key in same
                }, (how, at, end, idx)


def test_devices_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    names = ["pipe", "socket", "folder", "link"]
    said = loaded(*(tmp_path / name for name in names), Path("/dev/zero"), Path("/dev/tty"))
    for words in ["a pipe is not read", "a socket is", "no trace in this folder", "a device is"]:
        assert words in said


def frame(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def run_frame(idx: int, cell: int) -> bytes:
    fields = [
        (b"\xa3idx", b"\xce" + struct.pack(">I", idx)),
        (b"\xa4cell", bytes([cell])),
        (b"\xa5class", b"\xa4cell"),
        (b"\xadstarted_nanos", b"\0"),
        (b"\xa6status", b"\xa7running"),
    ]
    return frame(b"\xa3run\x85" + b"".join(name + value for name, value in fields))


def cell_frame(idx: int) -> bytes:
    return frame(b"\xa4cell\x82\xa3idx" + bytes([idx]) + b"\xa2id\xa0")


def lengths_that_lie(head: bytes) -> bytes:
    return head + struct.pack("<II", 40 << 20, 1) + b"\xa3run\x80" + b"\0" * 100


def candidates_everywhere(head: bytes) -> bytes:
    return head + (struct.pack("<II", 3 << 20, 1) + b"\xa3run\x80") * 500_000


def frames_without_end(head: bytes) -> bytes:
    return head + frame(b"\xa7missing\x81\xa5words\xa0") * 1_000_000


def runs_without_end(head: bytes) -> bytes:
    return head + cell_frame(0) + b"".join(run_frame(n, 0) for n in range(100_000))


def runs_that_move(head: bytes) -> bytes:
    n_runs = 40_000
    runs = b"".join(run_frame(n, 0) for n in range(n_runs))
    moves = run_frame(n_runs, 1) + run_frame(n_runs, 2)
    return head + b"".join(map(cell_frame, range(3))) + runs + moves * 40_000


def one_far_index(head: bytes) -> bytes:
    return head + b"".join(run_frame(4_000_000_000 - n, 0) for n in range(1000))


def deep_values(head: bytes) -> bytes:
    return head + frame(b"\xa3run" + b"\x81\xa1a" * 1_000_000 + b"\xc0")


def long_lists(head: bytes) -> bytes:
    revisions = b"\xdd" + struct.pack(">I", 4_000_000) + b"\x80" * 4_000_000
    return head + frame(b"\xa4cell\x83\xa3idx\0\xa2id\xa0\xa9revisions" + revisions) * 4


HOSTILE = [
    lengths_that_lie,
    candidates_everywhere,
    frames_without_end,
    runs_without_end,
    runs_that_move,
    one_far_index,
    deep_values,
    long_lists,
]


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a session that died."""
    folder = tmp_path_factory.mktemp("died") / "kept"
    died_in_cell = f'run("%%gpumem\\n{KILL}")'
    played(folder, SESSION.format(n=3) + died_in_cell)
    return the_session(folder)


@pytest.mark.parametrize("make", [*HOSTILE, None])
def test_a_session_of_somebody_hostile(
    died: Path, folder: Path, make: Callable[[bytes], bytes] | None
) -> None:
    folder.mkdir()
    path = folder / died.name
    shutil.copy(died, path)
    if make is None:
        # Of ten terabytes nothing is on the disk.
        os.truncate(path, 10 << 40)
    else:
        path.write_bytes(make(died.read_bytes()))
    loaded(path)
    kernel = """
    import resource
    began = time.monotonic()
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    shell.run_line_magic("unload_ext", "gpumem")
    shell.run_line_magic("load_ext", "gpumem")
    took = time.monotonic() - began
    assert took < 1, took
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    run("%%gpumem\\n1")
    assert before < 400, before
    run("%gpumem sessions")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
    """
    found = played(folder, kernel)
    assert int(found.stdout.splitlines()[-1]) < MOST_MIB


def test_no_path_that_a_session_names_is_opened(died: Path, folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    whole = died.read_bytes()
    (n_bytes,) = struct.unpack("<I", whole[:4])
    header, rest = whole[8 : 8 + n_bytes], whole[8 + n_bytes :]
    paths: list[Path] = []
    for name in (b"memory_events", b"memory_group", b"notebook", b"boot", b"pids"):
        for value in (b"/dev/zero", str(folder / "pipe").encode()):
            known = header.index(b"\xa7process") + 8
            assert header[known] & 0xF0 == 0x80
            fact = bytes([0xA0 + len(name)]) + name + b"\xd9" + bytes([len(value)]) + value
            n_facts = bytes([0xDE, 0, (header[known] & 0x0F) + 1])
            changed = header[:known] + n_facts + fact + header[known + 1 :]
            path = folder / f"{len(paths)}-{died.name}"
            path.write_bytes(frame(changed) + rest)
            paths.append(path)
    said = loaded(*paths)
    assert len(said.splitlines()) == len(paths), said
    paths[-1].rename(folder / died.name)
    played(folder, 'run("%gpumem sessions")')


NSIGHT = "TARGET_INFO_SESSION_START_TIME"
EVENTS = "CUDA_GPU_MEMORY_USAGE_EVENTS"
# `{e}` is the table of events, `{n}` an endless one.
ENDLESS = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)"
SCHEMAS = {
    "a view": "CREATE VIEW {e} AS {n} SELECT start, start AS bytes FROM n",
    "a computed column": "CREATE TABLE {e} (start, bytes AS (zeroblob(900000)));"
    "INSERT INTO {e} {n} SELECT start FROM n LIMIT 300000",
    "a virtual table": "CREATE VIRTUAL TABLE {e} USING fts5(start, bytes)",
    "no row ids": "CREATE TABLE {e} (start PRIMARY KEY, bytes) WITHOUT ROWID",
    "row ids of its own": "CREATE TABLE {e} (start, bytes, _rowid_);"
    "INSERT INTO {e} {n} SELECT start, start, 1 FROM n LIMIT 3",
    "a table that is a view": "CREATE VIEW {e} AS {n} SELECT start, 1 AS bytes FROM n;"
    "PRAGMA writable_schema = ON;"
    "UPDATE sqlite_schema SET type = 'table', rootpage = 2 WHERE name = '{e}'",
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_an_export_of_somebody_hostile(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "export.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        schema = schema.format(e=EVENTS, n=ENDLESS)
        database.executescript(f"CREATE TABLE {NSIGHT} (utcEpochNs); {schema}")
        database.commit()
    loaded(path)


def test_pages_of_an_export_that_lead_in_circles(tmp_path: Path) -> None:
    path = tmp_path / "export.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value)")
        database.execute(f"CREATE TABLE {NSIGHT} (utcEpochNs)")
        rows = ((n, "x" * 250) for n in range(60_000))
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", rows)
        database.commit()
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'StringIds'"
        ((root,),) = database.execute(sql)
    whole = path.read_bytes()
    start = (root - 1) * 4096
    (n_children,) = struct.unpack(">H", whole[start + 3 : start + 5])
    paths = []
    for child in range(0, n_children, max(1, n_children // 6)):
        damaged = bytearray(whole)
        cell = start + 12 + 2 * child
        (at,) = struct.unpack(">H", whole[cell : cell + 2])
        damaged[start + at : start + at + 4] = struct.pack(">I", root)
        paths.append(tmp_path / f"{child}.sqlite")
        paths[-1].write_bytes(damaged)
    said = loaded(*paths)
    assert sum("damaged" in line or "malformed" in line for line in said.splitlines()) == len(paths)


def test_a_long_session_is_compacted(folder: Path) -> None:
    names = "for n in range(400): globals()[f'a_rather_long_name_{n}'] = [sim.tensor(1 << 20)]"
    grow = "%%gpumem -q\\na_rather_long_name_{n}.append(sim.tensor(3 << 20))"
    program = f"""
    run("sim.use(64 << 30)")
    run("%gpumem use sim")
    run({names!r})
    _gpumem._set_look_patience(60_000)
    for n in range(220): run(f"{grow}")
    time.sleep(1)
    print(len(gpumem.recording().to_bytes()), flush=True)
    {KILL}
    """
    found = played(folder, program)
    path = the_session(folder)
    # Each look takes 14 KB, of which little is kept when the next one comes.
    assert int(found.stdout.splitlines()[-1]) < path.stat().st_size < 2 << 20
    assert not list(folder.glob("*.tmp"))
    assert "220 runs" in repr(gpumem.load(path))
