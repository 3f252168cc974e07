"""Programs that are forked from a process that has imported what they need.

Python starts in a tenth of a second, torch takes two more: who has them from its start does not
measure them. A program is a module with a function `main`, which reads `sys.argv` and may return
an exit code.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
# What is read when a process starts, and by torch when it is imported.
AT_START = (
    "LD_LIBRARY_PATH",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "OMP_NUM_THREADS",
)


def with_root() -> dict[str, str]:
    """Return the environment in which a process finds the modules of the tests."""
    known = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [known])])}


def run_module(
    *program: object,
    after: tuple[str, ...] = (),
    timeout: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a module with arguments, to its end, in a fork of a process that has imported others.

    Its environment is that of this process, if no other is given. After no others, and where there
    is no fork, it starts from nothing.
    """
    command = [str(it) for it in program]
    own = {**(environment or os.environ), "PYTHONFAULTHANDLER": "1", **with_root()}
    # A session of this process is not the parent of its session.
    own.pop("GPUMEM_PROCESSES", None)
    if not (after and hasattr(os, "fork")):
        return subprocess.run(
            [sys.executable, "-m", *command],
            check=False,
            cwd=cwd,
            env=own,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    key = (after, tuple(map(own.get, AT_START)), threading.get_ident())
    if key not in _SERVERS:
        _SERVERS[key] = _Server(after, own)
    return _SERVERS[key].run(command, str(cwd or Path.cwd()), own, timeout)


class _Server:
    """A process that has imported modules and forks for each program.

    It is no child of this one, whose children some tests count.
    """

    def __init__(self, modules: tuple[str, ...], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *modules],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.pid = int(self.process.stdout.readline())
        self.process.wait()

    def run(
        self, command: list[str], cwd: str, environment: dict[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            names = (out.name, err.name)
            print(json.dumps([command, cwd, environment, names]), file=self.process.stdin)
            self.process.stdin.flush()
            answers, _, _ = select.select([self.process.stdout], [], [], timeout)
            if not answers:
                os.kill(self.pid, signal.SIGKILL)
                _SERVERS.clear()
            code = int(self.process.stdout.readline()) if answers else -1
            texts = (Path(name).read_text("utf-8", errors="replace") for name in names)
            return subprocess.CompletedProcess(command, code, *texts)


# Each thread has its own.
_SERVERS: dict[tuple[tuple[str, ...], tuple[str | None, ...], int], _Server] = {}


def main() -> None:
    """Import modules, then fork on each request; the child runs its program."""
    if os.fork():
        os._exit(0)
    print(os.getpid(), flush=True)
    inherited = list(os.environ)
    for name in sys.argv[1:]:
        import_module(name)
    for line in sys.stdin:
        command, cwd, environment, names = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for own, name in enumerate(names, 1):
                os.dup2(os.open(name, os.O_WRONLY), own)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(cwd)
            for name in inherited:
                del os.environ[name]
            os.environ.update(environment)
            sys.argv, sys.path[0] = command, cwd
            code = import_module(command[0]).main()
            # Tearing down a large library takes seconds and tests nothing.
            sys.stdout.flush()
            os._exit(code or 0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
