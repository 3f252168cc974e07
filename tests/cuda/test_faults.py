"""Faults of the driver that only gpumem's own threads meet: torch and the cell go on as ever."""

from __future__ import annotations

import os
import sys
import time

import pytest

from tests.support.in_process import AT_END, forked_from

from .notebook import MIB, last, logged, machine, run, shell

OURS = "gpumem-"
"""The start of the names of gpumem's threads."""

# Every call that gpumem's threads make, as `test_these_are_all_calls_of_gpumem_s` shows.
CALLS = [
    "created a context",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetGraphMemAttribute",
    "cuDeviceGetMemPool",
    "cuDeviceGetName",
    "cuDeviceGetUuid",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuGetErrorName",
    "cuMemGetInfo_v2",
    "cuMemPoolGetAttribute",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetName",
    "nvmlDeviceGetUUID",
    "nvmlInit_v2",
    "nvmlSystemGetDriverVersion",
]


def cell() -> None:
    """Run a cell in which gpumem asks for everything; nothing of a fault is to be seen in it."""
    start = time.monotonic()
    text = "%%gpumem\nkept = torch.zeros(32 << 20, dtype=torch.uint8, device='cuda')\nlen(kept)"
    ran = shell().run_cell(text, store_history=True)  # type: ignore[no-untyped-call]
    assert (ran.success, ran.result) == (True, 32 << 20), ran
    assert time.monotonic() - start < 5
    assert sys.modules["torch"].cuda.memory_allocated() >= 32 * MIB


def start() -> None:
    """Have two cards, of which torch uses one."""
    machine().cards(2)
    run("import torch")


@forked_from("torch")
def test_these_are_all_calls_of_gpumem_s() -> None:
    start()
    cell()
    run("%gpumem status")
    cell()
    made = {call.name for call in machine().calls(OURS)}
    # Called only after an error, as between torch's loading of the driver and its `cuInit`.
    made.add("cuGetErrorName")
    assert made == set(CALLS) - {"created a context"}


@pytest.mark.parametrize(
    "fault", ["lost", "unlisted", "not_supported", "size 0", f"size {2**64 - 1}", f"size {2**50}"]
)
@forked_from("torch")
def test_a_fault_at_each_call_leaves_the_cell_alone(fault: str) -> None:
    start()
    cell()
    for call in CALLS:
        with machine().restored():
            machine().fail(call, fault, thread=OURS)
            cell()
    cell()
    row = last()
    assert row["kept_bytes"] == 0, row
    assert row["allocated_after_bytes"] == sys.modules["torch"].cuda.memory_allocated(), row
    assert len(logged) <= 1, logged


@pytest.mark.parametrize("fault", ["lost", "unlisted"])
@forked_from("torch")
def test_a_fault_at_each_call_from_the_start(fault: str) -> None:
    machine().put({**dict.fromkeys(CALLS, fault), "faults.thread": OURS})
    start()
    # The driver never answers.
    AT_END.clear()
    cell()
    cell()
    row = last()
    assert row["device_used_after_bytes"] is None, row
    assert row["allocated_after_bytes"] == 32 * MIB, row
    assert len(logged) <= 1, logged


@pytest.mark.parametrize(
    "call", ["cuMemGetInfo_v2", "cuDevicePrimaryCtxGetState", "nvmlDeviceGetMemoryInfo_v2"]
)
@forked_from("torch")
def test_a_call_that_hangs_for_10_s_holds_no_cell_up(call: str) -> None:
    start()
    cell()
    machine().wait(call, 10_000, thread=OURS)
    cell()
    cell()
    assert len(logged) <= 1, logged
    # Its thread still waits.
    sys.stdout.flush()
    os._exit(0)
