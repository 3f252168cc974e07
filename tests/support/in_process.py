"""Tests whose body runs in a process of its own, which a test cannot share with others.

A suite's fixture `environment` says what such a process has in its environment. By hand, below a
debugger for instance: `python -m tests.support.in_process tests.cuda.test_oom test_…`.

Where it may have a library from its start, it is forked from a process that has imported that.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import select
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", __name__]
CANNOT = 77
"""How a process ends that cannot show anything here; the last thing that it printed says why."""
TIMEOUT_SECONDS = 230

AT_END: list[Callable[[], object]] = []
"""What a process looks at once the body of its test is over."""


def in_process(body: Callable[..., None]) -> Callable[..., None]:
    """Run the body of a test, with its parameters, in a process of its own."""
    return _as_test(body, _ran_anew)


def forked_from(library: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the body of a test in a process of its own that has a library from its start."""

    def run(command: list[str], cwd: Path, environment: dict[str, str]) -> _Ran:
        return _server(library, environment.get("LD_LIBRARY_PATH")).run(command, cwd, environment)

    return lambda body: _as_test(body, run if hasattr(os, "fork") else _ran_anew)


_Ran = tuple[int, str]
"""How a process ended, and what it has printed."""


def _as_test(
    body: Callable[..., None], run: Callable[[list[str], Path, dict[str, str]], _Ran]
) -> Callable[..., None]:
    # pytest names the module as it likes.
    file = Path(inspect.getfile(body)).relative_to(ROOT)
    module = ".".join(file.with_suffix("").parts)

    def test(environment: dict[str, str], tmp_path: Path, **parameters: Any) -> None:
        import pytest  # noqa: PLC0415 (the process itself does without)

        code, said = run([module, body.__name__, json.dumps(parameters)], tmp_path, environment)
        if code == CANNOT:
            pytest.skip(said.splitlines()[-1])
        if code != 0:
            pytest.fail(f"the process ended with {code}\n{said[-8000:]}", pytrace=False)

    kind = inspect.Parameter.KEYWORD_ONLY
    fixtures = [inspect.Parameter(name, kind) for name in ("environment", "tmp_path")]
    parameters = [it.replace(kind=kind) for it in inspect.signature(body).parameters.values()]
    vars(test).update(
        __name__=body.__name__,
        __doc__=body.__doc__,
        __module__=body.__module__,
        __signature__=inspect.Signature([*fixtures, *parameters]),
        body=body,
    )
    return test


def _ran_anew(command: list[str], cwd: Path, environment: dict[str, str]) -> _Ran:
    ran = subprocess.run(
        [*COMMAND, *command],
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONFAULTHANDLER": "1", **with_root(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    return ran.returncode, ran.stdout


class _Server:
    """A process that has imported a library and forks for each test."""

    def __init__(self, library: str, ld_library_path: str | None) -> None:
        own = {} if ld_library_path is None else {"LD_LIBRARY_PATH": ld_library_path}
        self.process = subprocess.Popen(
            [*COMMAND, "--serve", library],
            env={**os.environ, "PYTHONFAULTHANDLER": "1", **with_root(), **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command: list[str], cwd: Path, environment: dict[str, str]) -> _Ran:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.NamedTemporaryFile() as out:
            print(json.dumps([command, str(cwd), environment, out.name]), file=self.process.stdin)
            self.process.stdin.flush()
            answers, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_SECONDS)
            if not answers:
                self.process.kill()
                _server.cache_clear()
            code = int(self.process.stdout.readline()) if answers else -1
            return code, Path(out.name).read_text("utf-8", errors="replace")


_server = functools.cache(_Server)


def _served(library: str) -> list[str]:
    """Fork on each request; return in the child, with its command line."""
    for name in (library, "IPython", "pytest"):
        import_module(name)
    for line in sys.stdin:
        command, cwd, environment, out = json.loads(line)
        pid = os.fork()
        if pid == 0:
            said = os.open(out, os.O_WRONLY)
            for its_own in (1, 2):
                os.dup2(said, its_own)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(cwd)
            sys.path[0] = cwd
            os.environ.update(environment)
            return list(command)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    sys.exit()


def with_root() -> dict[str, str]:
    """Return the environment in which a process finds the modules of the tests."""
    known = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [known])])}


def cannot(why: str) -> NoReturn:
    """End this process: here it cannot show what it should."""
    print(why)
    sys.exit(CANNOT)


def main() -> None:
    """Run the body of the test that the command line names."""
    is_served = sys.argv[1] == "--serve"
    module, name, *parameters = _served(sys.argv[2]) if is_served else sys.argv[1:]
    test = getattr(import_module(module), name)
    test.body(**json.loads(parameters[0] if parameters else "{}"))
    # This module is here twice: as the program, and as what the test imports.
    for check in import_module("tests.support.in_process").AT_END:
        check()
    if is_served:
        # Tearing down a large library takes seconds and tests nothing.
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
