"""What a script finds on a machine that is played: a framework's share of the driver, and cells."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
from gpumem import _gpumem

from tests.support.shell import open_shell

if TYPE_CHECKING:
    from tests.support.shell import Shell

state_file, log_file = (Path(os.environ[f"PLAYED_CUDA_{it}"]) for it in ("STATE", "LOG"))


def put(**changes: object) -> None:
    """Change the machine; it is read at any time, so the file is replaced in one step."""
    new = state_file.with_suffix(".new")
    lines = [f"{key.replace('__', '.')} = {value}" for key, value in changes.items()]
    new.write_text("\n".join([state_file.read_text(), *lines]))
    new.replace(state_file)


def n_calls(name: str) -> int:
    """Return how often the driver was called so."""
    return log_file.read_text().split().count(name)


def wait_for_calls(name: str, n: int) -> None:
    """Wait until the driver was called so, n times from now."""
    deadline, aim = time.monotonic() + 60, n_calls(name) + n
    while n_calls(name) < aim:
        assert time.monotonic() < deadline, log_file.read_text()
        time.sleep(0.001)


def start_cuda(*contexts: int) -> ctypes.CDLL:
    """Start the driver, and open contexts on devices."""
    driver = ctypes.CDLL("libcuda.so.1")
    assert driver.cuInit(0) == 0
    for device in contexts:
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), device) == 0
    return driver


def status(source: str) -> str:
    """Return what is said of a source."""
    return next(reason for name, _, reason in _gpumem.source_states() if name == source)


def levels() -> list[str]:
    """Return the levels of all devices but the host."""
    # The question waits for a driver that is loaded only now.
    _gpumem.source_states()
    lines = _gpumem.levels_text().splitlines()
    return [" ".join(line.split()) for line in lines if not line.startswith((" ", "host "))]


def shell() -> Shell:
    """Open a shell whose cells can change the machine."""
    made = open_shell()
    made.user_ns.update(put=put, wait_for_calls=wait_for_calls, n_calls=n_calls)
    return made


def last_row(device: str) -> dict[str, Any]:
    """Return the row of a device's latest run, in MiB."""
    rows = [row for row in gpumem.report().runs if row["device"] == device]
    return {
        key: value >> 20 if key.endswith("_bytes") and value is not None else value
        for key, value in rows[-1].items()
    }


def tell(answer: object) -> None:
    """Return what the test is to have."""
    print(json.dumps(answer))


def main() -> None:
    """Run the script of the command line."""
    # Of forks beside threads, which are gpumem's.
    warnings.simplefilter("ignore", DeprecationWarning)
    exec(sys.argv[1], {"__name__": "__main__"})  # noqa: S102 (what a test has written)


if __name__ == "__main__":
    main()
