"""The notebook of a process on a card: its cells, and what gpumem and torch say of them.

The shell comes with the first cell, or whatever else asks for it: a test prepares its machine and
its environment before that, and gpumem is loaded before any framework is imported.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import logging
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import gpumem
from gpumem import _gpumem

from tests.support.in_process import AT_END, cannot
from tests.support.shell import Shell, open_shell

from .played import LIBRARIES, Machine

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logged.append(record.getMessage())


logged: list[str] = []
"""What gpumem has logged."""

# What a busy machine causes: these say so, and leave a figure unknown.
_OF_LOAD = (
    "the driver does not answer",
    "could not search for holders",
    "a look for holders is not whole",
)


def assert_quiet() -> None:
    """Fail if gpumem has logged something that is not the machine's fault, or knew nothing."""
    said = [line for line in logged if not line.startswith(_OF_LOAD)]
    assert not said, said
    levels = [row["device_used_after_bytes"] for row in gpumem.report().runs if is_of_card(row)]
    assert not levels or any(level is not None for level in levels), "the driver never answered"


def is_of_card(row: dict[str, Any]) -> bool:
    """Tell whether a row of the report is of a card."""
    return str(row["device"]).startswith(("cuda", "nvml"))


@functools.cache
def shell() -> Shell:
    """Return the notebook's shell, with gpumem loaded."""
    logging.getLogger("gpumem").addHandler(_Log())
    logging.getLogger("gpumem").propagate = False
    AT_END.append(assert_quiet)
    opened = open_shell()
    # The machine may be busy with other tests: no search is cut short. A wheel that was released
    # gives them the time that users have.
    if hasattr(_gpumem, "_testing"):
        _gpumem._set_look_patience(60_000)
    return opened


@functools.cache
def machine() -> Machine:
    """Return the played machine of this process."""
    return Machine(Path(os.environ["PLAYED_CUDA_STATE"]).parent)


def names() -> dict[str, Any]:
    """Return the notebook's variables."""
    variables: dict[str, Any] = shell().user_ns
    return variables


def started(framework: str = "torch") -> Any:
    """Start a framework on the card in a cell, record from then on, and return its module."""
    if importlib.util.find_spec(framework) is None:
        cannot(f"{framework} is not installed here")
    raised = run(_STARTS[framework])
    if raised is not None:
        assert framework != "torch" or LIBRARIES is None, f"torch sees no played card: {raised}"
        cannot(f"{framework} sees no card here: {raised}")
    run("%gpumem on")
    return sys.modules[framework]


_STARTS = {
    "torch": "import torch\nkept = [torch.empty(1, device='cuda')]",
    "cupy": "import cupy\nkept = [cupy.empty(1)]",
    "jax": "import jax, jax.numpy as jnp\nkept = [jnp.zeros(1, device=jax.devices('gpu')[0])]",
    "tensorflow": "import tensorflow\n"
    "with tensorflow.device('GPU:0'):\n    kept = [tensorflow.zeros(1)]",
}


def run(cell: str) -> str | None:
    """Run a cell as a frontend does; return the name of what it raised."""
    with contextlib.redirect_stdout(io.StringIO()):
        ran = shell().run_cell(_dedented(cell), store_history=True)  # type: ignore[no-untyped-call]
    error = ran.error_before_exec or ran.error_in_exec
    return None if error is None else type(error).__name__


def printed(cell: str) -> str:
    """Run a cell and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shell().run_cell(_dedented(cell), store_history=True)  # type: ignore[no-untyped-call]
    return out.getvalue()


def _dedented(cell: str) -> str:
    return textwrap.dedent(cell).strip("\n") if cell.startswith("\n") else cell


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


def findings(kind: str) -> list[Any]:
    """Return the report's findings of a kind."""
    return [it for it in gpumem.report().findings if it.kind == kind]


def held(device: str = "cuda:0") -> dict[str, int]:
    """Return what each name alone keeps of a device."""
    return {it.name: it.n_bytes for it in gpumem.holders().roots if it.device == device}


def empty(n_mib: int, device: str = "cuda") -> str:
    """Return the text of a tensor."""
    return f"torch.empty({n_mib} << 20, dtype=torch.uint8, device={device!r})"


def configure(allocator: str) -> None:
    """Set how torch, which may be imported but does not run yet, is to allocate."""
    if "torch" in sys.modules and allocator:
        sys.modules["torch"]._C._accelerator_setAllocatorSettings(allocator)
    # By the name of old and of new versions.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = allocator


def check(device: int = 0) -> dict[str, Any]:
    """Compare the latest run's levels with torch's and the driver's; return its row."""
    torch = sys.modules["torch"]
    row, stats = last(f"cuda:{device}"), torch.cuda.memory_stats(device)
    reported = {
        "allocated": row["allocated_after_bytes"],
        "reserved": row["reserved_after_bytes"],
        "n_blocks": row["n_blocks_after"],
    }
    truth = {
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "n_blocks": stats["allocation.all.current"],
    }
    # Elsewhere, to ask torch would open a context. On a real card others come and go.
    if stats["reserved_bytes.all.current"] > 0 and "PLAYED_CUDA_STATE" in os.environ:
        free, total = torch.cuda.mem_get_info(device)
        reported["device_used"] = row["device_used_after_bytes"]
        truth["device_used"] = total - free
    assert reported == truth, (device, reported, truth)
    return row
