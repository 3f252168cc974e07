"""Tests whose body runs in a process of its own, which a test cannot share with others.

A suite's fixture `environment` says what such a process has in its environment. By hand, below a
debugger for instance: `python -m tests.support.in_process tests.cuda.test_oom test_…`.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
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


def in_process(body: Callable[..., None]) -> Callable[..., None]:
    """Run the body of a test, with its parameters, in a process of its own."""
    # pytest names the module as it likes.
    file = Path(inspect.getfile(body)).relative_to(ROOT)
    module = ".".join(file.with_suffix("").parts)

    def test(environment: dict[str, str], tmp_path: Path, **parameters: Any) -> None:
        import pytest  # noqa: PLC0415 (the process itself does without)

        ran = subprocess.run(
            [*COMMAND, module, body.__name__, json.dumps(parameters)],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", **with_root(), **environment},
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        if ran.returncode == CANNOT:
            pytest.skip(ran.stdout.splitlines()[-1])
        if ran.returncode != 0:
            said = f"{ran.stdout[-3000:]}{ran.stderr[-5000:]}"
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
    module, name, *parameters = sys.argv[1:]
    test = getattr(import_module(module), name)
    test.body(**json.loads(parameters[0] if parameters else "{}"))


if __name__ == "__main__":
    main()
