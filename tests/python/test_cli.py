"""``jupyter gpumem`` on scripts, recordings and sessions."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpumem._sizes import size_bytes
from gpumem.cli import COMMANDS, exits, main
from gpumem.cli.loops import OLDEST

from tests.support.programs import output_of
from tests.support.programs import run_gpumem as gpumem

SCRIPT = """
import sys
import gpumem
from gpumem import sim

sim.use(8 << 30)


def main():
    kept = []
    for _ in {loop}:
        kept.append(sim.tensor(64 << 20))
    return kept


if __name__ == "__main__":
    held = main()
    print(__file__, sys.argv, sys.path[0], flush=True)
    {end}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, loop: str = "gpumem.steps(range(20))", end: str = "") -> Path:
    path = folder / "=train.py"
    path.write_text(SCRIPT.format(loop=loop, end=end))
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recording of a script that stands beside it."""
    folder = tmp_path_factory.mktemp("saved")
    assert gpumem("run", "--save", folder / "saved", written(folder)).returncode == 0
    return folder / "saved"


def test_a_script_runs_as_in_python_with_its_report_on_stderr(script: Path) -> None:
    plain = output_of(script, "--html", "b")
    ended = gpumem("run", script, "--html", "b")
    assert (ended.returncode, ended.stdout) == (0, plain)
    assert "▲ held leaks 64 MiB a step" in ended.stderr
    assert "=train.py" in ended.stderr


def test_a_module_is_run_by_its_name(script: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copy(script, package / "__main__.py")
    ended = gpumem("run", "-m", "package", "--fast", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"['{package / '__main__.py'}', '--fast'] {tmp_path}" in ended.stdout
    assert "▲ held leaks 64 MiB a step" in ended.stderr


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("raise ValueError('over')", 1, "ValueError: over"),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('bad end')", 1, "bad end"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("sim.tensor(64 << 30)", 1, "OutOfMemoryError"),
    ],
)
def test_a_script_that_dies_has_its_own_code_and_a_report(
    tmp_path: Path, end: str, code: int, words: str
) -> None:
    ended = gpumem("run", written(tmp_path, end=end))
    assert ended.returncode == code
    assert words in ended.stderr
    assert "scripts.py" not in ended.stderr
    assert "leaks 64 MiB a step" in ended.stderr


# It ends at the first warning, or with the device half full.
FILLING = """
import sys, time
from gpumem import sim
sim.use(1 << 30)
weights = sim.tensor(2 << 20, requires_grad=True)
kept, warning = [], []
write = sys.stderr.write
sys.stderr.write = lambda text: warning.append(text) or write(text)
for i in range(240):
    time.sleep(0.03)
    kept.append((sim.tensor(2 << 20) * weights).sum())
    if warning:
        break
"""


@pytest.mark.skipif(sys.version_info < OLDEST, reason="sys.monitoring begins with Python 3.12")
@pytest.mark.skipif(sys.platform != "linux", reason="a look needs a copy of the process")
def test_a_script_prints_that_the_device_will_be_full(tmp_path: Path) -> None:
    path = tmp_path / "filling.py"
    path.write_text(FILLING)
    ended = gpumem("run", path)
    warning, *report = ended.stderr.split("GPU memory")
    assert re.fullmatch(
        r"▲ kept \+2 MiB every iteration of line 9 of filling.py \(\d+ of \d+\)"
        r"(?: · |\n  )full in about \d+ iterations \(\d+ s\)",
        warning.strip(),
    )
    assert (len(report), ended.stdout) == (1, "")
    assert "▲ kept leaks 2 MiB an iteration of line 9 of filling.py" in report[0]


@pytest.mark.skipif(sys.version_info < OLDEST, reason="sys.monitoring begins with Python 3.12")
def test_a_loop_is_judged_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, loop="range(20)")
    assert "a step" not in gpumem("run", path).stderr
    line = 1 + path.read_text().splitlines().index("    for _ in range(20):")
    ended = gpumem("run", "--loop", f"{path}:{line}", path)
    assert ended.returncode == 0
    assert "▲ held leaks 64 MiB a step" in ended.stderr


def test_a_session_is_kept_and_found_again(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where no other test keeps sessions: one of them would be the last.
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    assert gpumem("run", script).returncode == 0
    [session, *_] = json.loads(gpumem("sessions", "--json").stdout)
    assert session["notebook"] == str(script)
    assert session["ending"] == "in_order"
    assert "=train.py" in gpumem("sessions").stdout
    assert "▲ held leaks" in gpumem("report", session["id"][:6]).stdout
    assert "▲ held leaks" in gpumem("report", "last").stdout
    elsewhere = gpumem("report", "last", "--store", tmp_path)
    assert (elsewhere.returncode, "no session is kept in" in elsewhere.stderr) == (2, True)


def test_a_report_has_every_form(saved: Path, tmp_path: Path) -> None:
    page, png, svg = tmp_path / "p.html", tmp_path / "p.png", tmp_path / "p.svg"
    ended = gpumem("report", saved, "--html", page, "--png", png, "--svg", svg)
    assert ended.stdout == f"wrote {page}\nwrote {png}\nwrote {svg}\n"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text().startswith("<svg")
    assert page.stat().st_mode & 0o77 == 0
    assert json.loads(gpumem("report", saved, "--json").stdout)["findings"][0]["kind"] == "leak"
    assert gpumem("report", saved, "--markdown").stdout.startswith("### ▲ `held` leaks")


def test_a_report_is_a_trace_for_perfetto(saved: Path, tmp_path: Path) -> None:
    trace = tmp_path / "p.trace.json"
    assert gpumem("report", saved, "--perfetto", trace).stdout == f"wrote {trace}\n"
    assert json.loads(trace.read_text())["traceEvents"]
    assert trace.stat().st_mode & 0o77 == 0
    refused = gpumem("report", saved, "--perfetto", trace)
    assert (refused.returncode, "--force overwrites it" in refused.stderr) == (2, True)


def test_no_spreadsheet_takes_a_label_for_a_formula(saved: Path, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    assert gpumem("report", saved, "--csv", "-o", table).returncode == 0
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["cell"] for row in rows} == {"'=train.py"}
    assert {row["device"] for row in rows} == {"host", "sim:0"}


def test_a_file_is_overwritten_only_with_force(saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    page.write_text("mine")
    refused = gpumem("report", saved, "--html", page)
    assert (refused.returncode, page.read_text()) == (2, "mine")
    assert "--force overwrites it" in refused.stderr
    assert gpumem("report", saved, "--html", page, "--force").returncode == 0
    assert page.read_text(encoding="utf-8") != "mine"


def fixed(folder: Path) -> Path:
    script = written(folder, loop="gpumem.steps([0] * 20)")
    script.write_text(script.read_text().replace("kept.append", "id"))
    return script


def test_a_fix_is_seen_in_a_comparison(saved: Path, tmp_path: Path) -> None:
    script = fixed(saved.parent)
    after = tmp_path / "after"
    assert gpumem("run", "--save", after, script).returncode == 0
    changes = json.loads(gpumem("compare", saved, after, "--json").stdout)
    assert [change["change"] for change in changes if change["device"] == "sim:0"] == ["fixed"] * 2
    assert "fixed" in gpumem("compare", saved, after).stdout


def test_a_baseline_is_kept_listed_and_compared_with(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    listed = gpumem("baseline")
    assert (listed.returncode, listed.stdout[:15]) == (0, "no baseline yet")
    assert gpumem("baseline", "as is", saved).stdout == f"baseline as is: 1 run of {saved}\n"
    assert json.loads(gpumem("baseline", "--json").stdout) == ["as is"]
    after = tmp_path / "fixed"
    assert gpumem("run", "--save", after, fixed(saved.parent)).returncode == 0
    assert "fixed" in gpumem("compare", "as is", after).stdout
    # The newest of that name is the one; without a recording it is the last session.
    assert "of last" in gpumem("baseline", "as is").stdout
    assert "fixed" not in gpumem("compare", "as is", after).stdout
    missing = gpumem("baseline", "other", "nope")
    assert missing.returncode == exits.WRONG
    assert "cannot read nope: neither a file nor a baseline (there is as is)" in missing.stderr


def test_an_issue_has_figures_and_paths_but_no_source(saved: Path) -> None:
    text = gpumem("issue", saved).stdout
    assert "#### leak · sim:0" in text
    assert "+64 MiB each time, 20 times" in text
    assert "held by `held[0]`" in text
    assert "python 3." in text
    for secret in ("train.py", "append", str(saved.parent)):
        assert secret not in text
    assert "- cell: `=train.py`" in gpumem("issue", saved, "--source").stdout
    assert json.loads(gpumem("issue", saved, "--json").stdout)["findings"][0]["state"] == "leak"


def test_status_and_who_answer_without_a_gpu() -> None:
    status = json.loads(gpumem("status", "--json").stdout)
    assert "host" in {it["source"] for it in status["sources"] if it["used"]}
    assert "○ torch" in gpumem("status").stdout
    who = gpumem("who", "--json")
    assert (who.returncode, type(json.loads(who.stdout))) == (0, list)


def test_jupyter_finds_the_command() -> None:
    path = str(Path(sys.executable).parent)
    found = shutil.which("jupyter", path=path)
    if found is None:
        pytest.skip("there is no `jupyter` here")
    environment = os.environ | {"PATH": os.pathsep.join([path, os.environ["PATH"]])}
    ended = subprocess.run(
        [found, "gpumem", "--help"], check=True, capture_output=True, text=True, env=environment
    )
    assert all(f"    {command} " in ended.stdout for command in COMMANDS)
    assert exits.EXPLAINED in ended.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([command, "--help"])
    assert leaving.value.code == 0
    shown = capsys.readouterr().out
    assert f"  jupyter gpumem {command}" in shown
    # They are those of all commands: `jupyter gpumem --help` has them.
    assert "exit codes:" not in shown


def test_a_recording_that_is_none_is_a_line(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("words of another kind")
    ended = gpumem("report", other)
    assert ended.returncode == 2
    assert f"{other}: byte 0: text, which gpumem does not read" in ended.stderr
    assert "hint: gpumem reads its own recordings" in ended.stderr
    unknown = gpumem("report", "zzz")
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("6GiB", 6 << 30), ("512 MB", 512_000_000), ("1.5gib", 3 << 29), ("42", 42)],
)
def test_sizes_are_read_as_people_type_them(text: str, n_bytes: int) -> None:
    assert size_bytes(text) == n_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "6 GiB/s", "1e3", "6XB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: write 6GiB"):
        size_bytes(text)
