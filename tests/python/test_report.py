"""The report and the recording, as Python has them."""

from __future__ import annotations

import copy
import errno
import json
import pickle
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.details import Growth

from tests.support.shell import new_session, shells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> gpumem.types.Recording:
    """Return a recording of a cell that leaks and of one that fails."""
    new_session()
    with shells(tmp_path_factory.mktemp("leak")) as new_shell:
        shell = new_shell()
        # Forty of them fill a tenth of it.
        sim.use(total_bytes=400 << 20)
        shell.run("from gpumem import sim\nkept = []")
        for _ in range(10):
            shell.run("%%gpumem -q\nkept.append(sim.tensor(4 << 20))")
        shell.run("%%gpumem -q --label failing\n1 / 0")
        return gpumem.types.Recording.from_bytes(gpumem.recording().to_bytes())


def test_a_finding_carries_its_evidence(leak: gpumem.types.Recording) -> None:
    (finding,) = (each for each in gpumem.report(leak).findings if each.device == "sim:0")
    assert (finding.kind, finding.state) == ("leak", "leak")
    assert finding.severity in {"critical", "warning"}
    assert finding.cell is not None
    assert finding.cell.label == "kept.append(sim.tensor(4 << 20))"
    assert finding.cell.execution_count == 11
    assert (finding.n_runs, finding.runs) == (10, tuple(range(10)))
    assert finding.bytes_per_run == 4 * MIB
    assert isinstance(finding.details, Growth)
    assert not finding.details.steps
    low, high = finding.details.interval
    assert low <= 4 * MIB <= high
    assert finding.evidence
    assert all(figure.holds for figure in finding.evidence)
    assert finding.fix is not None
    assert "4 MiB" in f"{finding.title} {finding.detail}"


def test_a_row_for_each_run_and_device(leak: gpumem.types.Recording) -> None:
    rows = gpumem.report(leak).runs
    assert [(row["run"], row["device"]) for row in rows] == [
        (run, device) for run in range(11) for device in ("sim:0", "host")
    ]
    first, last = rows[0], rows[-2]
    assert first["allocated_after_bytes"] - first["allocated_before_bytes"] == 4 * MIB
    assert (last["cell"]["label"], last["status"]) == ("failing", "error")
    assert first["ended_nanos"] >= first["started_nanos"] >= 0
    assert all(row["allocated_after_bytes"] is None for row in rows if row["device"] == "host")


def test_json_and_text_say_the_same(leak: gpumem.types.Recording) -> None:
    report = gpumem.report(leak)
    content = json.loads(report.to_json())
    assert len(content["findings"]) == len(report.findings)
    assert content["runs"] == report.runs
    for width in (60, 100):
        text = report.text(width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert report.findings[0].title.split()[0] in text
    assert repr(report) == "<Report: 1 finding, 22 rows>"


def test_a_path_is_no_recording_yet() -> None:
    with pytest.raises(TypeError, match=r"not 'a\.gpumem'\nhint: gpumem\.load\(path\) reads one"):
        gpumem.report("a.gpumem")


def test_a_report_does_not_change_with_the_session(shell: Shell) -> None:
    shell.run("%%gpumem -q\n1")
    report = gpumem.report()
    shell.run("%%gpumem -q\n2")
    assert {row["run"] for row in report.runs} == {0}
    assert {row["run"] for row in gpumem.report().runs} == {0, 1}


@pytest.mark.parametrize(
    ("name", "magic"),
    [
        ("r.png", b"\x89PNG\r\n"),
        ("r.PNG", b"\x89PNG\r\n"),
        ("r.svg", b"<svg"),
        ("r.html", b"<!doctype"),
        ("r.json", b"{"),
        ("r.trace.json", b'{"displayTimeUnit"'),
    ],
)
def test_a_report_is_saved_as_its_name_says(
    leak: gpumem.types.Recording, tmp_path: Path, name: str, magic: bytes
) -> None:
    gpumem.report(leak).save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    gpumem.report(leak).save(str(tmp_path / name))


@pytest.mark.parametrize("name", ["r.gif", "r", "r.png.txt", "r.csv", "r.md"])
def test_another_ending_is_refused(leak: gpumem.types.Recording, tmp_path: Path, name: str) -> None:
    with pytest.raises(gpumem.GpuMemError, match=r"hint: end the name in \.png, .*\.trace\.json"):
        gpumem.report(leak).save(tmp_path / name)
    assert list(tmp_path.glob(name)) == []


def test_a_recording_comes_back_from_its_file(leak: gpumem.types.Recording, tmp_path: Path) -> None:
    path = tmp_path / "session.gpumem"
    leak.save(path)
    again = gpumem.load(path)
    assert again.to_bytes() == leak.to_bytes() == path.read_bytes()
    assert gpumem.report(again).to_json() == gpumem.report(leak).to_json()
    assert repr(again) == "<Recording: 11 runs of 2 cells>"
    assert gpumem.load(str(path)).to_bytes() == leak.to_bytes()


@pytest.mark.parametrize(
    ("content", "offset"),
    [(b"", 0), (b"root:x:0:0:root", 0), (b"\x80\x04\x95pickle", 2), (bytes(4096), 0)],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes, offset: int) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(gpumem.RecordingError) as raised:
        gpumem.load(path)
    assert raised.value.offset == offset
    assert str(raised.value).startswith(f"{path}: byte {offset}: ")
    first, *hints = str(raised.value).splitlines()
    assert all(line.startswith("hint: ") for line in hints)
    assert "recording" in first


def test_a_cut_recording_gives_its_whole_frames(
    leak: gpumem.types.Recording, tmp_path: Path
) -> None:
    path = tmp_path / "cut.gpumem"
    whole = leak.to_bytes()
    ends = frame_ends(whole)
    for end in range(ends[0] + 1, len(whole), len(whole) // 50):
        # What ends with a whole frame is a whole, shorter recording.
        if end in ends:
            continue
        path.write_bytes(whole[:end])
        words = f"the file was cut at byte {end}: the rest is missing"
        with pytest.warns(gpumem.RecordingWarning) as warned:
            cut = gpumem.load(path)
        assert [str(warning.message) for warning in warned] == [f"{path}: {words}"]
        assert repr(cut).endswith(f"; {words}>")
        assert f"! {words}" in gpumem.report(cut).text(200).splitlines()
        n_whole = max(each for each in ends if each <= end)
        assert cut.to_bytes().startswith(whole[:n_whole])


def frame_ends(whole: bytes) -> list[int]:
    """Return where each frame ends: a length of 4 bytes, a checksum of 4, the payload."""
    ends = []
    at = 0
    while at < len(whole):
        at += 8 + int.from_bytes(whole[at : at + 4], "little")
        ends.append(at)
    assert ends[-1] == len(whole)
    return ends


@pytest.mark.parametrize("name", ["kept.gpumem", "kept.png", "kept.svg", "kept.html"])
def test_a_file_is_for_its_owner_alone(
    leak: gpumem.types.Recording, tmp_path: Path, name: str
) -> None:
    # The shell keeps its profile beside this one.
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / name
    for _ in ("new", "again"):
        save(leak, path)
        assert stat.filemode(path.stat().st_mode) == "-rw-------"
        path.chmod(0o644)
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("name", ["kept.gpumem", "kept.png", "kept.svg", "kept.html"])
def test_a_full_disk_leaves_the_old_file(
    leak: gpumem.types.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.chdir(folder)
    save(leak, Path(name))
    before = Path(name).read_bytes()
    with full_disk(), pytest.raises(OSError, match=name) as raised:
        save(leak, Path(name))
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, name)
    assert Path(name).read_bytes() == before
    assert list(folder.iterdir()) == [folder / name]


def test_a_link_stays_and_what_it_points_to_is_written(
    leak: gpumem.types.Recording, tmp_path: Path
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    for name, is_there in [("old", True), ("new", False)]:
        link, target = tmp_path / name, folder / name
        if is_there:
            target.write_bytes(b"before")
        link.symlink_to(Path("there") / name)
        leak.save(link)
        assert link.is_symlink()
        assert target.read_bytes() == leak.to_bytes()


def test_a_device_and_a_pipe_are_written_to(leak: gpumem.types.Recording, tmp_path: Path) -> None:
    leak.save("/dev/null")
    assert Path("/dev/null").is_char_device()
    code = "import gpumem; gpumem.recording().save('/dev/stdout')"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert "0 runs" in repr(gpumem.types.Recording.from_bytes(shown.stdout))
    # The file that a shell has opened is the one that is written.
    path = tmp_path / "out"
    with path.open("wb") as out:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=out)
    assert "0 runs" in repr(gpumem.load(path))


def save(recording: gpumem.types.Recording, path: Path) -> None:
    """Write the recording, or its report."""
    if path.suffix == ".gpumem":
        recording.save(path)
    else:
        gpumem.report(recording).save(path)


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond a kilobyte."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_missing_file_is_named_as_by_open(tmp_path: Path) -> None:
    path = tmp_path / "missing.gpumem"
    with pytest.raises(FileNotFoundError) as ours:
        gpumem.load(path)
    with pytest.raises(FileNotFoundError) as pythons:
        path.open()
    assert str(ours.value) == str(pythons.value)
    assert ours.value.errno == pythons.value.errno
    with pytest.raises(FileNotFoundError, match="nowhere"):
        gpumem.recording().save(tmp_path / "nowhere" / "r.gpumem")


def test_findings_are_plain_values(leak: gpumem.types.Recording) -> None:
    findings = gpumem.report(leak).findings
    assert copy.deepcopy(findings) == pickle.loads(pickle.dumps(findings)) == findings  # noqa: S301 (our own)
    assert len(set(findings)) == len(findings)


def test_a_notebook_shows_findings_as_a_table(leak: gpumem.types.Recording) -> None:
    shown = gpumem.report(leak).findings._repr_html_()
    assert shown.count("<tr>") == 1 + len(gpumem.report(leak).findings)
    assert ">kept</td>" in shown
    assert ">4 MiB</td>" in shown
    rules = gpumem.Rules(min_growth=1 << 50)
    assert "no findings" in gpumem.report(leak, rules=rules).findings._repr_html_()


def test_a_notebook_shows_a_comparison_as_a_table(leak: gpumem.types.Recording) -> None:
    shown = gpumem.compare(leak, leak)._repr_html_()
    assert ">same</td>" in shown
    assert shown.count(">4 MiB</td>") == 2


def test_an_empty_session_has_a_report(shell: Shell, tmp_path: Path) -> None:
    shell.run("pass")
    report = gpumem.report()
    assert (report.findings, report.runs) == ([], [])
    assert report.text().startswith("GPU memory · 0 runs of 0 cells")
    for name in ("r.png", "r.svg", "r.html", "r.json", "r.trace.json"):
        report.save(tmp_path / name)
