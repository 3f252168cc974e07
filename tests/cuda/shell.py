"""The notebook of a test's program: cells, and what gpumem says of them beside torch's own figures.

A program starts with everything that this module has.
"""

from __future__ import annotations

import contextlib
import io
import logging
from typing import Any

import gpumem
from gpumem import _gpumem
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


_log = _Log()
logging.getLogger("gpumem").addHandler(_log)
logging.getLogger("gpumem").propagate = False
logged = _log.messages
"""What gpumem has logged."""

# What a busy machine causes: these say so, and leave a figure unknown.
_OF_LOAD = (
    "the driver does not answer",
    "who held memory after a run",
    "a look for holders is not whole",
)


def assert_quiet() -> None:
    """Fail if gpumem has logged something that is not the machine's fault."""
    said = [line for line in logged if not line.startswith(_OF_LOAD)]
    assert not said, said


_config = Config()
_config.HistoryManager.enabled = False
shell: InteractiveShell = InteractiveShell.instance(
    config=_config, display_pub_class=CapturingDisplayPublisher
)
names: dict[str, Any] = shell.user_ns
"""The notebook's variables."""
shell.run_line_magic("load_ext", "gpumem")
# The machine may be busy with other tests: no search is cut short.
_gpumem._testing.look_for(60_000)


def run(cell: str) -> str | None:
    """Run a cell as a frontend does; return the name of what it raised."""
    with contextlib.redirect_stdout(io.StringIO()):
        ran = shell.run_cell(cell, store_history=True)
    error = ran.error_before_exec or ran.error_in_exec
    return None if error is None else type(error).__name__


def printed(cell: str) -> str:
    """Run a cell and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shell.run_cell(cell, store_history=True)
    return out.getvalue()


def rows(device: str = "cuda:0") -> list[dict[str, Any]]:
    """Return the report's row of each run on a device."""
    found: list[dict[str, Any]] = [row for row in gpumem.report().runs if row["device"] == device]
    return found


def last(device: str = "cuda:0") -> dict[str, Any]:
    """Return the row of the latest run on a device, without those nested in it."""
    return [row for row in rows(device) if row["parent"] is None][-1]


def trace(device: str = "cuda:0") -> dict[str, Any]:
    """Return the trace of the latest run on a device."""
    run_id = last(device)["run"]
    report = gpumem.report()
    [found] = [it for it in report.traces if (it["run"], it["device"]) == (run_id, device)]
    return dict(found)


def check(device: int = 0) -> dict[str, Any]:
    """Compare the latest run's levels with torch's and the driver's; return its row."""
    import torch  # noqa: PLC0415 (the program decides when it is imported)

    row, stats = last(f"cuda:{device}"), torch.cuda.memory_stats(device)
    told = {
        "allocated": row["allocated_after_bytes"],
        "reserved": row["reserved_after_bytes"],
        "n_blocks": row["n_blocks_after"],
    }
    truth = {
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "n_blocks": stats["allocation.all.current"],
    }
    if stats["reserved_bytes.all.current"] > 0:
        # Elsewhere, to ask torch would open a context.
        free, total = torch.cuda.mem_get_info(device)
        told["device_used"] = row["device_used_after_bytes"]
        truth["device_used"] = total - free
    assert told == truth, (device, told, truth)
    return row
