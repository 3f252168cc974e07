"""Tests whose body runs in a process of its own, which a test cannot share with others.

A suite's fixture `environment` says what such a process has in its environment. By hand, below a
debugger for instance: `python -m tests.support.in_process tests.cuda.test_oom test_…`.

Where it may have a library from its start, it is forked from a process that has imported that.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tests.support.forked import ROOT, run_module

if TYPE_CHECKING:
    from collections.abc import Callable

CANNOT = 77
"""How a process ends that cannot show anything here; the last thing that it printed says why."""
TIMEOUT_SECONDS = 230

AT_END: list[Callable[[], object]] = []
"""What a process looks at once the body of its test is over."""


def in_process(body: Callable[..., None]) -> Callable[..., None]:
    """Run the body of a test, with its parameters, in a process of its own."""
    return _as_test(body, after=())


def forked_from(library: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the body of a test in a process of its own that has a library from its start."""
    return lambda body: _as_test(body, after=(library, "IPython", "pytest"))


def _as_test(body: Callable[..., None], after: tuple[str, ...]) -> Callable[..., None]:
    # pytest names the module as it likes.
    file = Path(inspect.getfile(body)).relative_to(ROOT)
    module = ".".join(file.with_suffix("").parts)

    def test(environment: dict[str, str], tmp_path: Path, **parameters: Any) -> None:
        import pytest  # noqa: PLC0415 (the process itself does without)

        ran = run_module(
            __name__,
            module,
            body.__name__,
            json.dumps(parameters),
            after=after,
            timeout=TIMEOUT_SECONDS,
            cwd=tmp_path,
            environment={**os.environ, **environment},
        )
        if ran.returncode == CANNOT:
            pytest.skip(ran.stdout.splitlines()[-1])
        if ran.returncode != 0:
            said = f"{ran.stdout}\n{ran.stderr}"[-8000:]
            pytest.fail(f"the process ended with {ran.returncode}\n{said}", pytrace=False)

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


def cannot(why: str) -> NoReturn:
    """End this process: here it cannot show what it should."""
    print(why)
    sys.exit(CANNOT)


def main() -> None:
    """Run the body of the test that the command line names."""
    module, name, *parameters = sys.argv[1:]
    test = getattr(import_module(module), name)
    test.body(**json.loads(parameters[0] if parameters else "{}"))
    # This module is here twice: as the program, and as what the test imports.
    for check in import_module("tests.support.in_process").AT_END:
        check()


if __name__ == "__main__":
    main()
