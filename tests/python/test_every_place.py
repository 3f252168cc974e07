"""The same leak wherever code runs: each place says name, path, line, fix and device."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.programs import output_of, run_gpumem, run_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Place = Callable[[Path], str]

N = 10
# A busy machine may take long to look.
PATIENT = "from gpumem import sim, _gpumem\n_gpumem._set_look_patience(60_000)"
DEVICE = "sim.use(8 << 30)\nweights = sim.tensor(32 << 20, requires_grad=True)"
SETUP = f"{PATIENT}\n{DEVICE}\nlosses = []"
LEAK = "losses.append((sim.tensor(32 << 20) * weights).sum())"
FIX = f"- {LEAK} + {LEAK[:-1]}.detach())"
# A function that names what it fills: the text has both.
STEP = f"def step():\n    {LEAK}"
STEPS = f"with gpumem.record('train'):\n    for _ in gpumem.steps(range({N})):\n        {LEAK}"
REPORT = "print(gpumem.report().text())"


def script(folder: Path, *parts: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text("\n".join(parts) + "\n")
    return path


def line_in(path: Path) -> str:
    """Return the number of the line that leaks."""
    lines = path.read_text().splitlines()
    return str(1 + next(idx for idx, line in enumerate(lines) if line.strip() == LEAK))


def notebook(folder: Path, *cells: str) -> Path:
    path = folder / "train.ipynb"
    content = nbformat.v4.new_notebook()
    content.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(content, path)
    return path


def kernel(folder: Path) -> str:
    """As JupyterLab and Notebook run it: they show this text beside the widget."""
    cells = [f"%load_ext gpumem\n%gpumem on\n{SETUP}", *[LEAK] * N, "%gpumem_report --text"]
    content = nbformat.read(notebook(folder, *cells), as_version=4)
    NotebookClient(content, timeout=120, extra_arguments=["--log-level=ERROR"]).execute()
    return str(content.cells[-1].outputs[0]["data"]["text/plain"])


def terminal(folder: Path) -> str:
    typed = ["%load_ext gpumem", "%gpumem on", SETUP, *[LEAK] * N, "%gpumem_report", ""]
    options = ["--simple-prompt", "--no-banner", "--no-confirm-exit"]
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", *options, "--HistoryManager.enabled=False"],
        capture_output=True,
        check=True,
        cwd=folder,
        env={**os.environ, "IPYTHONDIR": str(folder / "ipython"), "COLUMNS": "100"},
        input="\n".join(typed),
        text=True,
        timeout=200,
    )
    return ran.stdout


def plain_script(folder: Path) -> str:
    loop = f"for _ in range({N}):\n    with gpumem.record('step'):\n        step()"
    return output_of(script(folder, "import gpumem", SETUP, STEP, loop, REPORT))


def in_function(folder: Path) -> str:
    body = textwrap.indent(f"{DEVICE}\nlosses = []\n{STEPS}\n{REPORT}", "    ")
    return output_of(script(folder, "import gpumem", PATIENT, "def main():", body, "main()"))


def marimo(folder: Path) -> str:
    cell = textwrap.indent(f"import gpumem\n{SETUP}\n{STEPS}\n{REPORT}\nreturn", "    ")
    head = "import marimo\napp = marimo.App()\n@app.cell\ndef _():"
    return output_of(script(folder, head, cell, "if __name__ == '__main__':\n    app.run()"))


def run(folder: Path) -> str:
    loop = f"for _ in gpumem.steps(range({N})):\n    step()"
    return run_gpumem("run", script(folder, "import gpumem", SETUP, STEP, loop)).stderr


def check(folder: Path) -> str:
    return run_gpumem("check", notebook(folder, SETUP, *[LEAK] * N), "-q").stdout


def ran_pytest(folder: Path, *options: str, mark: str, head: str = "") -> str:
    test = f"{mark}\ndef test_step({head}):\n    {LEAK}"
    path = script(folder, "import pytest", SETUP, test, name="test_train.py")
    # In CI, pytest repeats the whole message of a failure in its short summary.
    always = ["-p", "no:cacheprovider", "-q", "-rN", "-c", "/dev/null", "--rootdir", folder]
    return run_python("-m", "pytest", *always, *options, path, cwd=folder).stdout


def pytest_mark(folder: Path) -> str:
    return ran_pytest(folder, mark=f"@pytest.mark.gpumem(runs={N})")


def pytest_suite(folder: Path) -> str:
    mark = f"@pytest.mark.parametrize('n', range({N}))"
    return ran_pytest(folder, "--gpumem", mark=mark, head="n")


CLUSTER = f"""
import distributed, gpumem, gpumem.dask, train

if __name__ == "__main__":
    options = dict(n_workers=1, threads_per_worker=1, host="127.0.0.1", memory_limit=0)
    with (
        distributed.LocalCluster(dashboard_address="127.0.0.1:0", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        registered = gpumem.dask.register(client, "workers")
        client.run(train.begin)
        for number in range({N}):
            with gpumem.record("epoch"):
                client.submit(train.step, number, pure=False).result()
        print(registered.report().text(200))
        [recording] = registered.recordings().values()
        print(gpumem.report(recording).text())
        registered.close()
"""


def dask(folder: Path) -> str:
    begin = "def begin():\n    global weights\n" + textwrap.indent(DEVICE, "    ")
    script(folder, PATIENT, "losses = []", begin, STEP.replace("()", "(_)", 1))
    return output_of(script(folder, CLUSTER, name="cluster.py"), cwd=folder)


IN_REPORT = "held by losses (list of 10 tensors, each with its graph)"
# The place, what it says of name and path, and where it says the line.
PLACES = [
    (kernel, IN_REPORT, "In [11], line 1 ·"),
    (terminal, IN_REPORT, "In [17], line 1 ·"),
    (plain_script, IN_REPORT, "train.py:{line} ·"),
    (in_function, IN_REPORT.replace("losses", "losses in main()"), "train.py:{line} ·"),
    (marimo, IN_REPORT, "train.py:{line} ·"),
    (run, IN_REPORT, "train.py:{line} ·"),
    (check, "held by losses · list of 10 tensors, each with its graph", f"in In [11] {LEAK}"),
    (
        pytest_mark,
        "held by `losses` losses[0].grad_fn.next_functions[0].<saved> · list of 10 tensors",
        "test_train.py:{line}",
    ),
    (
        pytest_suite,
        "held by `test_train.losses[0].grad_fn.next_functions[0].<saved>` · list of 10 tensors",
        "test_train.py:{line}",
    ),
    (dask, "held by train.losses, of a module (list of", "train.py:{line} ·"),
]
NEEDS: dict[Place, str] = {marimo: "marimo", dask: "distributed"}


@pytest.mark.parametrize(
    ("place", "held", "line"), PLACES, ids=lambda it: getattr(it, "__name__", "")
)
def test_the_same_leak_reads_alike_everywhere(
    tmp_path: Path, place: Place, held: str, line: str
) -> None:
    if importlib.util.find_spec(NEEDS.get(place, "gpumem")) is None:
        pytest.skip(f"there is no {NEEDS[place]} here")
    text = place(tmp_path)
    print(text)
    said = " ".join(text.split())
    # The same memory is reported once.
    assert said.count(held) == 1
    written = next((it for it in tmp_path.glob("*train.py")), None)
    number = "" if written is None else line_in(written)
    assert line.format(line=number) in said
    assert FIX in said
    assert "sim:0" in said
