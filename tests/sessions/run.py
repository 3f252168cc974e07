"""Runs one session in a fresh shell, with gpumem recording every cell.

Prints what was said, as JSON after ``@@@``::

    python run.py cases/01_tuple_history.py
    python run.py cases/01_tuple_history.py --replace '{"before": "…", "after": "…"}'
    python run.py cases/01_tuple_history.py --then '["del x", "losses.append(f())"]'
    python run.py cases/01_tuple_history.py --plain

``--replace`` runs it with a proposed fix, ``--then`` adds cells at its end, ``--plain`` runs it
without gpumem. README.md describes the format of a session.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpumem.types import Finding
    from IPython.core.interactiveshell import InteractiveShell

END = "@@@"
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}


# How the first cell of a session begins that does not import its world itself.
BEGINNINGS = {
    "sim": "from gpumem import sim\nsim.use(8 << 30)\nMB = 1 << 20",
    "torch": "import torch\nfrom torch import nn\ntorch.set_num_threads(1)\ntorch.manual_seed(0)",
}
IMPORTS = re.compile(r"^\s*(import torch|from gpumem import sim)", re.MULTILINE)
FIRST_CELL = re.compile(r"^# %%.*\n", re.MULTILINE)

# Where torch's sessions make their tensors, if not on the CPU.
DEVICE = os.environ.get("GPUMEM_SESSION_DEVICE")


@dataclass(frozen=True)
class Cell:
    """One run of a cell."""

    source: str
    cell_id: str | None


@dataclass
class Session:
    """A session's header, and its cells in the order in which they run."""

    truth: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)


@dataclass
class _Parser:
    """Reads a session line by line."""

    session: Session = field(default_factory=Session)
    # The cells of the loop that is open, and how many times it runs.
    turn: list[Cell] | None = None
    n_turns: int = 0
    # The lines of the open cell, how many times it runs, and its id in the notebook.
    lines: list[str] | None = None
    times: int = 1
    cell_id: str | None = None

    def read(self, line: str) -> None:
        if mark := re.match(r"# %%\s*(.*)$", line):
            self.close()
            self.open(mark[1])
        elif self.lines is not None:
            self.lines.append(line)
        elif head := re.match(r"# (\w+): (.*)$", line):
            self.session.truth[head[1]] = head[2]

    def open(self, spec: str) -> None:
        times = re.search(r"\bx(\d+)", spec)
        cell_id = re.search(r"id=(\w+)", spec)
        if spec.startswith("loop"):
            self.turn, self.n_turns = [], int(times[1]) if times else 1
        elif spec.startswith("end"):
            self.session.cells.extend((self.turn or []) * self.n_turns)
            self.turn = None
        else:
            self.lines = []
            self.times = int(times[1]) if times else 1
            self.cell_id = cell_id[1] if cell_id else None

    def close(self) -> None:
        source = "\n".join(self.lines or []).strip("\n")
        if source.strip():
            cells = self.session.cells if self.turn is None else self.turn
            cells.extend([Cell(source, self.cell_id)] * self.times)
        self.lines = None


def parse(path: Path) -> Session:
    """Read a session in percent format."""
    parser, text = _Parser(), path.read_text("utf-8")
    world = re.search(r"^# world: (.*)$", text, re.MULTILINE)
    if world and world[1] in BEGINNINGS and not IMPORTS.search(text):
        text = FIRST_CELL.sub(rf"\g<0>{BEGINNINGS[world[1]]}\n", text, count=1)
    for line in text.splitlines():
        parser.read(line)
    parser.close()
    return parser.session


def level(world: str | None) -> int:
    """Bytes allocated on the simulated device or the GPU, else resident in this process."""
    if world == "sim" and "gpumem" in sys.modules:
        from gpumem import sim  # noqa: PLC0415 (a plain run does without gpumem)

        # There is no device yet before the first tensor.
        with contextlib.suppress(Exception):
            return sim.memory_stats()["allocated_bytes"]
    if world == "torch" and DEVICE and "torch" in sys.modules:
        allocated: int = sys.modules["torch"].cuda.memory_allocated()
        return allocated
    pages = Path("/proc/self/statm").read_text("utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def option(name: str) -> Any:
    """Return the JSON that follows an option of the command line."""
    return json.loads(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else None


def cells_to_run(session: Session) -> list[Cell]:
    """Return the session's cells, with the given replacement and additions."""
    cells = session.cells
    if replace := option("--replace"):
        before, after = replace["before"], replace["after"]
        cells = [Cell(cell.source.replace(before, after), cell.cell_id) for cell in cells]
    return cells + [Cell(source, None) for source in option("--then") or []]


def set_device(shell: InteractiveShell) -> None:
    """Let torch make its tensors on the device that the environment names."""
    cell = f"import torch; torch.set_default_device({DEVICE!r}); del torch"
    shell.run_cell(cell, store_history=False)


def is_counted(finding: Finding) -> bool:
    """Leave out the host beside another device: what is played has its memory there."""
    return DEVICE is None or finding.device != "host"


def new_shell(folder: str, *, plain: bool) -> InteractiveShell:
    """Open a shell in which gpumem records, unless it is plain."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415 (after the settings)
    from traitlets.config import Config  # noqa: PLC0415 (likewise)

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, ipython_dir=folder)
    if not plain:
        shell.run_line_magic("load_ext", "gpumem")
        shell.run_line_magic("gpumem", "on")
    return shell


def run_cell(shell: InteractiveShell, cell: Cell, world: str | None) -> dict[str, Any]:
    """Run a cell as a frontend does, and return what came of it."""
    out, before = io.StringIO(), level(world)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(cell.source, store_history=True, cell_id=cell.cell_id)
    error = result.error_in_exec or result.error_before_exec
    return {
        "source": cell.source,
        "out": out.getvalue(),
        "before": before,
        "after": level(world),
        "error": error and f"{type(error).__name__}: {error}"[:300],
    }


def main() -> None:
    """Run the session that the command line names, and print what was said."""
    session = parse(Path(sys.argv[1]))
    cells = cells_to_run(session)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    folder = tempfile.mkdtemp(prefix="session-")
    os.chdir(folder)
    # Sessions that are tried do not push the user's own out of those that are kept.
    os.environ["JUPYTER_DATA_DIR"] = folder
    plain = "--plain" in sys.argv
    shell = new_shell(folder, plain=plain)
    if DEVICE and session.truth.get("world") == "torch":
        set_device(shell)
    log = [run_cell(shell, cell, session.truth.get("world")) for cell in cells]
    said = {"truth": session.truth, "log": log, "check": shell.user_ns.get("_check")}
    if not plain:
        import gpumem  # noqa: PLC0415 (a plain run does without gpumem)

        report = gpumem.report()
        said["findings"] = [asdict(it) for it in report.findings if is_counted(it)]
        said["text"] = report.text(110)
    sys.stdout.write(f"\n{END}{json.dumps(said, default=str)}")
    sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # threads of a session may wait for ever


if __name__ == "__main__":
    main()
