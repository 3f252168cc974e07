"""A driver that fails, hangs or lies to gpumem: the cell is untouched, and one line is logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .played import Machine
    from .program import Program

# What gpumem's own threads call while torch runs: the driver's library and NVML.
CALLS = [
    "cuInit",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRetain",
    "cuMemGetInfo",
    "cuDeviceGetMemPool",
    "cuMemPoolGetAttribute",
    "cuDeviceGetGraphMemAttribute",
    "nvmlInit",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
]

# gpumem's threads alone: what torch asks is answered.
OURS = "gpumem"

SCRIPT = """
    import time
    run("import torch\\nkept = [torch.empty(1, device='cuda')]")
    import torch
    run("%gpumem on")
    slowest = 0
    for n in range(6):
        start = time.monotonic()
        before = torch.cuda.memory_allocated()
        raised = run("kept.append(torch.empty(8 << 20, dtype=torch.uint8, device='cuda'))")
        slowest = max(slowest, time.monotonic() - start)
        assert raised is None
        row = last()
        # torch's own counters do not ask the driver.
        assert row["allocated_after_bytes"] == torch.cuda.memory_allocated(), row
        assert row["kept_bytes"] == 8 * MIB, row
        assert row["status"] == "ok", row
    assert len(names["kept"]) == 7
    assert run("1 / 0") == "ZeroDivisionError"
    run("%gpumem status\\n%gpumem\\n%gpumem_report --text")
    of_search = ("who held memory after a run", "a look for holders is not whole")
    said = [it for it in logged if not it.startswith(of_search)]
    assert len(said) <= 1, said
"""


def faulty(program: Program, more: str = "") -> None:
    program(SCRIPT + more)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails(program: Program, machine: Machine, call: str) -> None:
    machine.fail(call, "unknown", thread=OURS)
    faulty(program)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_takes_10_s(program: Program, machine: Machine, call: str) -> None:
    machine.wait(call, 10_000, thread=OURS)
    # Each end of a cell waits 50 ms at most; the rest is this machine's.
    faulty(program, "    assert slowest < 5, slowest\n")


@pytest.mark.parametrize("call", [it for it in CALLS if "Mem" in it or "Processes" in it])
@pytest.mark.parametrize("n_bytes", [0, 1 << 62])
def test_a_call_that_answers_with_a_wrong_size(
    program: Program, machine: Machine, call: str, n_bytes: int
) -> None:
    machine.wrong_size(call, n_bytes, thread=OURS)
    faulty(program, "    gpumem.report().to_json()\n")
