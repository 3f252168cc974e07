"""``jupyter gpumem run`` and ``check`` on notebooks, in real kernels."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest

from tests.support.programs import run_gpumem as gpumem

pytestmark = pytest.mark.ipython

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SIM = "from gpumem import sim\nsim.use(8 << 30)"
LOOP = "import gpumem\nkept = []\nfor _ in gpumem.steps(range(20)):\n"
LEAKS = f"{LOOP}    kept.append(sim.tensor(64 << 20))"
HEALTHY = f"{LOOP}    sim.tensor(64 << 20)"
INTERRUPTS = """import os, signal, time
os.kill(os.getppid(), signal.SIGINT)
time.sleep(600)"""
DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Write a notebook of a healthy cell, a leak, and one that a test adds."""
    return notebook(tmp_path / "written.ipynb", SIM, HEALTHY)


def notebook(path: Path, *cells: str, tags: tuple[str, ...] = ()) -> Path:
    content = nbformat.v4.new_notebook()
    content.cells = [
        nbformat.v4.new_code_cell(cell, id=f"cell-{number}") for number, cell in enumerate(cells)
    ]
    content.cells[-1].metadata["tags"] = list(tags)
    nbformat.write(content, path)
    return path


def test_the_gallery_fails_by_name_even_out_of_memory(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    paths = [NOTEBOOKS / "leak-gallery.ipynb", NOTEBOOKS / "out-of-memory.ipynb"]
    before = [path.read_bytes() for path in paths]
    ended = gpumem("check", *paths, "--junit", junit, "--github", "-q")
    assert ended.returncode == 1, ended.stderr
    assert f"▲ {paths[0]}: 6 findings" in ended.stdout
    found = "  leak: trainer.history leaks 8 MiB a step\n    in       In [13] self.history.append"
    assert found in ended.stdout
    assert "\n    held by  losses · list of 16 tensors" in ended.stdout
    assert "  out_of_memory: " in ended.stdout
    line = 1 + paths[0].read_text().splitlines().index('   "id": "losses",')
    assert f"::error file={paths[0]},line={line},title=gpumem%3A losses leaks" in ended.stdout
    suites = ET.parse(junit).getroot()  # noqa: S314 (our own file)
    assert [suite.get("errors") for suite in suites] == ["0", "0"]
    failed = {it.get("name") for it in suites[0] if it.find("failure") is not None}
    assert "In [4] losses.append(model(batch).sum())" in failed
    assert not any("In [5] " in str(name) for name in failed)
    assert [path.read_bytes() for path in paths] == before


def test_a_healthy_notebook_passes(written: Path) -> None:
    ended = gpumem("check", written, "-q")
    assert (ended.returncode, ended.stdout) == (0, f"✓ {written}: nothing found\n")
    assert ended.stderr == ""


def test_the_line_to_change_is_printed(tmp_path: Path) -> None:
    ended = gpumem("check", NOTEBOOKS / "quickstart.ipynb", "-q")
    assert ended.returncode == 1
    fix = "fix      - losses.append(model(batch).sum())\n             + losses.append"
    assert fix in ended.stdout
    assert not list(tmp_path.iterdir())


def test_ctrl_c_interrupts_the_cell_and_what_ran_is_reported(tmp_path: Path) -> None:
    path = notebook(tmp_path / "long.ipynb", SIM, LEAKS, INTERRUPTS, "never = 1")
    ended = gpumem("run", path, "-o", tmp_path / "out.ipynb")
    assert ended.returncode == 130, ended.stderr
    assert "▲ kept leaks 64 MiB a step" in ended.stdout
    assert ended.stderr.endswith("\ninterrupted by Ctrl-C\n")
    assert "never" not in ended.stdout + ended.stderr
    written = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert written.cells[2].outputs[0].ename == "KeyboardInterrupt"


def test_ctrl_c_ends_check_after_what_it_found(tmp_path: Path) -> None:
    path = notebook(tmp_path / "long.ipynb", SIM, LEAKS, INTERRUPTS)
    junit = tmp_path / "junit.xml"
    ended = gpumem("check", path, path, "--timeout", 300, "--junit", junit, "-q")
    assert ended.returncode == 130, ended.stderr
    assert ended.stdout.count("leak: kept leaks 64 MiB a step") == 1
    assert ended.stdout.endswith("  interrupted by Ctrl-C\n")
    [errored] = ET.parse(junit).getroot().findall(".//testcase[error]")  # noqa: S314 (ours)
    assert str(errored.get("name")).startswith("In [3] ")


def test_a_kernel_that_dies_has_its_code_and_what_led_to_it(tmp_path: Path) -> None:
    path = notebook(tmp_path / "dies.ipynb", SIM, LEAKS, "import time; time.sleep(1.5)", DIES)
    ended = gpumem("check", path, "--json", "-q")
    assert ended.returncode == 4, ended.stderr
    [checked] = json.loads(ended.stdout)["notebooks"]
    assert "killed by SIGKILL" in checked["broken"]
    assert "in cell 4: os.kill(os.getpid()" in checked["broken"]
    assert [it["kind"] for it in checked["violations"]] == ["leak"]


def test_a_cell_that_fails_has_its_own_code(tmp_path: Path) -> None:
    path = notebook(tmp_path / "fails.ipynb", "n = 0", "1 / n", "print('not reached')")
    junit = tmp_path / "junit.xml"
    ended = gpumem("check", path, "-q", "--junit", junit)
    assert ended.returncode == 3
    cases = ET.parse(junit).getroot().iter("testcase")  # noqa: S314 (our own file)
    assert [it.get("name") for it in cases if it.find("error") is not None] == ["In [2] 1 / n"]
    assert "In [2] failed: ZeroDivisionError" in ended.stdout
    assert "----> 1 1 / n" in ended.stderr
    run = gpumem("run", path, "--allow-errors", "-q", "-o", tmp_path / "out.ipynb")
    assert run.returncode == 0, run.stderr
    assert "not reached" in (tmp_path / "out.ipynb").read_text()


def test_a_cell_over_its_time_is_stopped_and_those_before_judged(
    tmp_path: Path,
) -> None:
    path = notebook(tmp_path / "slow.ipynb", SIM, LEAKS, "import time\ntime.sleep(600)")
    ended = gpumem("check", path, "--timeout", "3", "-q")
    assert ended.returncode == 3
    assert "In [3] failed: Timeout: the cell took longer than 3 s" in ended.stdout
    assert "leak: kept leaks 64 MiB a step" in ended.stdout


def test_a_peak_above_the_limit_fails(written: Path) -> None:
    assert gpumem("check", written, "--peak", "1GiB", "-q").returncode == 0
    ended = gpumem("check", written, "--peak", "32 MiB", "-q")
    assert ended.returncode == 1
    assert "peak: peak of 64 MiB\n    in       In [2] " in ended.stdout


def test_a_leak_is_known_again_by_its_id_and_can_be_allowed(tmp_path: Path) -> None:
    path = notebook(tmp_path / "leaks.ipynb", SIM, LEAKS)
    first = json.loads(gpumem("check", path, "--json").stdout)["notebooks"][0]["violations"][0]
    assert first["is_new"] is None
    # A cell above is another number, and no other leak.
    notebook(path, SIM, HEALTHY, LEAKS)
    again = gpumem("check", path)
    assert again.returncode == 1
    assert f"    id       {first['fingerprint']} · known since 20" in again.stdout
    junit = tmp_path / "junit.xml"
    allow = ["--allow", first["fingerprint"], "--allow", "00000000"]
    allowed = gpumem("check", path, *allow, "--github", "--junit", junit)
    assert allowed.returncode == 0, allowed.stdout
    assert f"  allowed  {first['fingerprint']}: kept leaks 64 MiB a step" in allowed.stdout
    assert "--allow 00000000: no finding has this id" in allowed.stdout
    assert "::notice file=" in allowed.stdout
    assert "allowed" in (junit.read_text())
    malformed = gpumem("check", path, "--allow", "kept")
    assert malformed.returncode == 2
    assert "'kept' is no id of a finding" in malformed.stderr


def test_growth_that_a_baseline_does_not_have_fails(written: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "before.gpumem"
    assert gpumem("run", written, "--save", baseline, "-q").returncode == 0
    leaking = notebook(tmp_path / "later.ipynb", SIM, LEAKS)
    options = ("-q", "--fail-on", "oom", "--against", baseline)
    assert gpumem("check", written, *options).returncode == 0
    ended = gpumem("check", leaking, *options)
    assert ended.returncode == 1
    assert "  worse: kept.append(sim.tensor(64 << 20)) grows 64 MiB a step\n" in ended.stdout


def test_a_run_writes_outputs_page_and_recording_with_the_level(tmp_path: Path) -> None:
    path = notebook(tmp_path / "n.ipynb", SIM, LEAKS, "print(sum(map(id, [])))")
    before = path.read_bytes()
    out, page, saved = tmp_path / "out.ipynb", tmp_path / "page.html", tmp_path / "saved"
    ended = gpumem("run", path, "-o", out, "--html", page, "--save", saved)
    assert ended.returncode == 0, ended.stderr
    assert "▲ kept leaks 64 MiB a step" in ended.stdout
    assert "[2/3] kept.append(sim.tensor(64 << 20)) · sim:0 1.25 GiB\n" in ended.stderr
    assert path.read_bytes() == before
    executed = nbformat.read(out, as_version=4)
    assert [cell.source for cell in executed.cells] == [SIM, LEAKS, "print(sum(map(id, [])))"]
    assert [cell.outputs for cell in executed.cells[:2]] == [[], []]
    assert executed.cells[2].outputs[0].text == "0\n"
    assert "kept leaks" in page.read_text(encoding="utf-8")
    again = gpumem("run", path, "-o", out)
    assert again.returncode == 2
    assert f"{out} exists\nhint: --force overwrites it" in again.stderr


def test_a_tagged_cell_is_repeated_for_a_verdict(tmp_path: Path) -> None:
    grows = "kept.append(sim.tensor(512 << 20))"
    path = notebook(tmp_path / "n.ipynb", SIM, "kept = []", grows, tags=("gpumem-repeat",))
    assert gpumem("check", path, "-q").returncode == 0
    ended = gpumem("check", path, "--repeat", "10", "-q")
    assert ended.returncode == 1
    assert "leak: kept leaks 512 MiB a run" in ended.stdout
    named = gpumem("run", path, "--repeat", "2", "--cell", "no-such")
    assert named.returncode == 2
    assert "has no cell no-such" in named.stderr


def test_an_extension_the_notebook_loads_prints_as_always(tmp_path: Path) -> None:
    path = notebook(tmp_path / "n.ipynb", "%load_ext gpumem", SIM, "%%gpumem\nx = sim.tensor(1)")
    assert gpumem("run", path, "-o", tmp_path / "out.ipynb", "-q").returncode == 0
    loads, _, line = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert loads.outputs == []
    assert "kept" in line.outputs[0].data["text/plain"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "no-such.ipynb"], "there is no notebook no-such.ipynb"),
        (["check", "{written}", "--fail-on", "pressure"], "unknown pressure: there is leak"),
        (["check", "{written}", "--peak", "6GB/s"], "'6GB/s' is not a size: write 6GiB"),
        (["check", "{written}", "--against", "no-such"], "cannot read no-such: neither a file"),
        (["run", "{written}", "--kernel", "no-such"], "the kernel no-such cannot start"),
        (["run", "{written}", "--loop", "a.py:3"], "--loop is for scripts"),
        (["run", "{written}", "--repeat", "3"], "has no cell to repeat"),
        (["run"], "run needs a notebook, a script, or -m MODULE"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    written: Path, arguments: list[str], words: str
) -> None:
    ended = gpumem(*(it.format(written=written) for it in arguments))
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_nbclient_is_named_with_the_line_that_installs_it(written: Path, tmp_path: Path) -> None:
    (tmp_path / "nbclient.py").write_text("raise ImportError(name='nbclient')")
    ended = gpumem("run", written, PYTHONPATH=str(tmp_path))
    assert ended.returncode == 2
    assert "running notebooks needs nbclient\nhint: pip install nbclient ipykernel" in ended.stderr


def test_nothing_is_recorded_if_gpumem_is_off(written: Path) -> None:
    ended = gpumem("check", written, GPUMEM_DISABLE="1")
    assert ended.returncode == 2
    assert "nothing is recorded: GPUMEM_DISABLE is set" in ended.stderr
