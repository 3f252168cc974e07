"""A kernel of its own: plays the cells of a session, then says on its last line what is left.

It reads the session as JSON from standard input, ``{"is_loaded": …, "sources": …, "steps": …}``.
Where that last line does not come, the kernel died.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import logging
import os
import signal
import sys
import time
import warnings
from typing import Any

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

# A hang says where it hangs, before whoever started this process gives up.
HANG_SECONDS = float(os.environ.get("GPUMEM_HARM_HANG_SECONDS", "150"))
TOTAL_BYTES = 64 << 30


class Log(logging.Handler):
    """What gpumem logs."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class Kernel:
    """A shell that a person works in."""

    def __init__(self, *, is_loaded: bool, sources: list[str]) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell: InteractiveShell = InteractiveShell.instance(
            config=config, display_pub_class=CapturingDisplayPublisher
        )
        self.errors: list[str | None] = []
        self.n_logged: list[int] = []
        self.cpu_seconds: list[float] = []
        self.is_loaded = is_loaded
        self.log = Log()
        logger = logging.getLogger("gpumem")
        logger.addHandler(self.log)
        logger.propagate = False
        if is_loaded:
            self.shell.run_line_magic("load_ext", "gpumem")
        if "sim" in sources:
            self.run(f"from gpumem import sim; sim.use({TOTAL_BYTES})")
        if is_loaded:
            self.shell.run_line_magic("gpumem", f"use {' '.join(sources)}")
            self.shell.run_line_magic("gpumem", "on")

    @property
    def stopped(self) -> str | None:
        """Why recording stopped, if it did."""
        if not self.is_loaded:
            return None
        magics: Any = self.shell.magics_manager.registry["GpuMemMagics"]
        reason: str | None = magics._extension.stopped
        return reason

    def run(self, cell: str, cell_id: str | None = None) -> None:
        """Run a cell as a frontend does, and note what it raised."""
        n_before, began = len(self.log.messages), time.thread_time()
        raised = self.shell.run_cell(cell, store_history=True, cell_id=cell_id)
        error = raised.error_before_exec or raised.error_in_exec
        self.errors.append(None if error is None else type(error).__name__)
        self.n_logged.append(len(self.log.messages) - n_before)
        self.cpu_seconds.append(time.thread_time() - began)

    def play(self, step: dict[str, Any]) -> None:
        """Run a cell a number of times or for a while."""
        end = time.monotonic() + step["seconds"]
        n = 0
        while n < step["times"] or time.monotonic() < end:
            self.run(step["cell"], step["cell_id"])
            n += 1

    def ended(self) -> dict[str, Any]:
        """Return what is left of the session."""
        display: Any = self.shell.display_pub
        lines = [it for it in display.outputs if "gpumem" in (it["metadata"] or {})]
        return {
            "errors": self.errors,
            "n_logged": self.n_logged,
            "cpu_seconds": self.cpu_seconds,
            "lines": [line["data"]["text/plain"] for line in lines],
            "log": self.log.messages,
            "results": self.shell.user_ns.get("results"),
            "stopped": self.stopped,
            "holders": self.holders(),
        }

    def holders(self) -> list[str]:
        """Return the names that the latest look at each device found."""
        if not self.is_loaded:
            return []
        import gpumem  # noqa: PLC0415 (a session may be played without it)

        looks = json.loads(gpumem.report().to_json())["holders"]
        return sorted({root["name"] for look in looks for root in look["roots"]})


def main() -> None:
    """Play the session; what its cells print belongs to nobody."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    warnings.filterwarnings("ignore")
    # A job in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    session = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        kernel = Kernel(is_loaded=session["is_loaded"], sources=session["sources"])
        kernel.errors.clear()
        kernel.n_logged.clear()
        kernel.cpu_seconds.clear()
        for step in session["steps"]:
            kernel.play(step)
    print(json.dumps(kernel.ended()), flush=True)


if __name__ == "__main__":
    main()
