"""Kills kernels at random moments and looks at what they left.

Each kernel is forked from a process that has imported gpumem but not used it, and plays cells. A
pipe brings the number of each run whose line was printed. Afterwards another fork reads the
session: every such run must be in it. Says in JSON how many kernels were killed, how many lines
they had printed, and which runs are missing.

``killed.py FOLDER N`` kills N kernels; with ``--full`` the folder is a disk that fills meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from gpumem import _gpumem, open_session, sim
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

LONGEST_LIFE_SECONDS = 0.15
PRINTED = 1


class Reporter(DisplayPublisher):
    """Sends the number of each run whose line is shown through a pipe."""

    pipe: int

    def publish(self, data: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
        """Note that a user can see it."""
        words = data["text/plain"]
        if "not kept" in words:
            os.write(self.pipe, b"lost\n")
        elif "run" in (metadata or {}).get("gpumem", {}):
            os.write(self.pipe, b"%d\n" % metadata["gpumem"]["run"])


def shell_of(folder: Path, pipe: int) -> InteractiveShell:
    """Return a shell that keeps its sessions in a folder."""
    config = Config()
    config.HistoryManager.enabled = False
    config.GpuMem.store = str(folder)
    Reporter.pipe = pipe
    shell: InteractiveShell = InteractiveShell.instance(config=config, display_pub_class=Reporter)
    shell.run_line_magic("load_ext", "gpumem")
    return shell


def play(folder: Path, pipe: int) -> None:
    """Run cells until the process is killed."""
    shell = shell_of(folder, pipe)
    sim.use(8 << 30)
    _gpumem.use_sources(["sim"])
    shell.user_ns.update(sim=sim, kept=[])
    while True:
        shell.run_cell("%%gpumem\nkept.append(sim.tensor(1 << 20))", store_history=True)


def kill_one(folder: Path, numbers: random.Random) -> tuple[list[int], bool]:
    """Return the runs whose lines were printed before the kernel was killed, in a whole disk."""
    read, write = os.pipe()
    if (kernel := os.fork()) == 0:
        os.close(read)
        play(folder, write)
        os._exit(1)
    os.close(write)
    with os.fdopen(read) as pipe:
        first = pipe.readline()
        assert first, "the kernel ended by itself"
        time.sleep(numbers.uniform(0, LONGEST_LIFE_SECONDS))
        os.kill(kernel, signal.SIGKILL)
        os.waitpid(kernel, 0)
        lines = [first, *pipe.readlines()]
    whole = [line for line in lines if line.endswith("\n")]
    until = whole.index("lost\n") if "lost\n" in whole else len(whole)
    return [int(line) for line in whole[:until]], until < len(whole)


def missing(folder: Path, printed: list[int]) -> list[int | str]:
    """Return the printed runs that the kernel did not leave."""
    read, write = os.pipe()
    if (reader := os.fork()) == 0:
        os.close(read)
        try:
            lost = lost_of(folder, printed, write)
        except Exception:  # noqa: BLE001 (whatever it is, it is reported)
            lost = [traceback.format_exc()]
        os.write(write, json.dumps(lost).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(reader, 0)
    with os.fdopen(read) as pipe:
        found: list[int | str] = json.loads(pipe.read() or f'["the reader ended with {status}"]')
    return found


def lost_of(folder: Path, printed: list[int], pipe: int) -> list[int | str]:
    """Return the printed runs that are not in the session, and what is damaged in it."""
    shell_of(folder, pipe)
    found = json.loads(open_session()._report_json())
    ended = {run["run"] for run in found["runs"] if run["status"] == "ok"}
    damage = [it for it in found["warnings"] if "kernel died" not in it]
    return [*damage, *(set(printed) - ended)]


def main(folder: Path, n_kills: int, *, fills: bool) -> None:
    """Kill, look, and say what was found."""
    numbers = random.Random(n_kills)  # noqa: S311 (no secret)
    n_printed, n_filled, lost = 0, 0, []
    for n in range(n_kills):
        kept = folder / f"kernel-{n}"
        if fills:
            with (folder / "filled").open("wb") as file:
                # Room for a folder and a file, and for a part of what is to be written.
                free = shutil.disk_usage(folder).free
                file.write(bytes(max(0, free - numbers.randrange(2, 5) * 4096)))
        printed, was_full = kill_one(kept, numbers)
        n_printed += len(printed)
        n_filled += was_full
        (folder / "filled").unlink(missing_ok=True)
        if printed:
            lost += [(n, run) for run in missing(kept, printed)]
        shutil.rmtree(kept, ignore_errors=True)
    print(json.dumps({"printed": n_printed, "filled": n_filled, "lost": lost}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), fills="--full" in sys.argv)
