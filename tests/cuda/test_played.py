"""The played libraries themselves, seen through the real torch: what other tests build upon."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .played import LIBRARIES, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

if LIBRARIES is None:
    pytest.skip("CUDA is played by `cargo xtask test cuda`", allow_module_level=True)

import torch

MIB = 1 << 20


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine for processes of its own, on which a context costs nothing."""
    made = Machine(tmp_path)
    made.cards(1, context_mib=0)
    return made


@pytest.fixture
def here(own_machine: Machine) -> Iterator[Machine]:
    """Return the machine of this process, with nothing allocated."""
    torch.cuda.empty_cache()
    yield own_machine
    torch.cuda.empty_cache()


def of_bytes(n_bytes: int) -> torch.Tensor:
    return torch.empty(n_bytes, dtype=torch.uint8, device="cuda")


@pytest.mark.usefixtures("here")
def test_memory_that_nobody_touches_costs_the_host_nothing() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * 4096

    of_bytes(1)
    before = resident_bytes()
    x = torch.zeros(6 << 30, dtype=torch.uint8, device="cuda").fill_(1)
    assert resident_bytes() - before < 64 * MIB
    del x


def test_processes_share_a_card_and_leave_it_however_they_end(here: Machine) -> None:
    hold = """
import torch
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
print("holds", flush=True)
input()
"""
    of_bytes(1)
    before = torch.cuda.mem_get_info()[0]
    holder = subprocess.Popen(
        [sys.executable, "-c", hold],
        env={**os.environ, **here.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    with_context = (1024 + 300) * MIB
    assert before - torch.cuda.mem_get_info()[0] == with_context
    holder.kill()
    holder.communicate()
    assert torch.cuda.mem_get_info()[0] == before


# Faults.


def test_a_call_fails_with_the_error_that_it_was_given(here: Machine) -> None:
    here.fail("cuMemGetInfo_v2", "lost")
    with pytest.raises(RuntimeError, match="unspecified launch failure"):
        torch.cuda.mem_get_info()
    here.heal("cuMemGetInfo_v2")
    assert torch.cuda.mem_get_info()[0] > 0


def test_a_call_returns_a_wrong_size(here: Machine) -> None:
    here.wrong_size("cuMemGetInfo_v2", 123)
    assert torch.cuda.mem_get_info() == (123, 123)


def test_a_call_takes_its_time(here: Machine) -> None:
    here.wait("cuMemGetInfo_v2", 300)
    start = time.monotonic()
    assert torch.cuda.mem_get_info()[0] > 0
    assert time.monotonic() - start >= 0.3


def test_a_hanging_call_never_returns_and_is_logged(machine: Machine) -> None:
    machine.hang("cuMemGetInfo_v2")
    script = """
    import os, threading
    torch.empty(1, device="cuda")
    call = threading.Thread(target=torch.cuda.mem_get_info, daemon=True)
    call.start()
    call.join(0.5)
    tell(call.is_alive())
    os._exit(0)
    """
    assert machine.run(script) is True
    names = [call.name for call in machine.calls()]
    assert names.count("created a context") == 1
    assert names.index("cuInit") < names.index("created a context") < names.index("cuMemAlloc_v2")
    assert names[-1] == "cuMemGetInfo_v2"
    assert not [name for name in names if name.startswith("missing")]
