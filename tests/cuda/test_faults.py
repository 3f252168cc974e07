"""Faults of the driver that only gpumem's own threads meet: torch and the cell go on as ever."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from .played import LIBRARIES, Machine

if TYPE_CHECKING:
    from pathlib import Path

if LIBRARIES is None:
    pytest.skip("CUDA is played by `cargo xtask test cuda`", allow_module_level=True)

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

# A recorded notebook on a machine whose state file it may change, and the log of Python.
NOTEBOOK = """
import logging, os, sys, time
from pathlib import Path
import gpumem
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

MIB = 1 << 20
logged = []

class Log(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())

logging.getLogger().addHandler(Log())

def put(*lines):
    state = Path(os.environ["PLAYED_CUDA_STATE"])
    new = state.with_suffix(".changed")
    new.write_text("\\n".join([healthy, *lines]))
    new.replace(state)

healthy = Path(os.environ["PLAYED_CUDA_STATE"]).read_text()
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
shell.run_line_magic("load_ext", "gpumem")
sys.stderr = sys.stdout = open(os.devnull, "w")

def cell():
    # What it returned, how long it took in seconds, and what torch has now.
    start = time.monotonic()
    ran = shell.run_cell(
        "%%gpumem\\nkept = torch.zeros(32 << 20, dtype=torch.uint8, device='cuda')\\nlen(kept)",
        store_history=True,
    )
    took = time.monotonic() - start
    return [ran.success, ran.result, took < 5, torch.cuda.memory_allocated() >= 32 * MIB]

def tell(answer):
    sys.stdout = sys.__stdout__
    print(json.dumps(answer), flush=True)
    os._exit(0)

shell.user_ns["torch"] = torch
"""
UNTOUCHED = [True, 32 << 20, True, True]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with two cards, of which torch uses one."""
    machine = Machine(tmp_path)
    machine.cards(2, context_mib=300)
    return machine


def notebook(script: str) -> str:
    return NOTEBOOK + textwrap.dedent(script)


def test_these_are_all_calls_of_gpumem_s(machine: Machine) -> None:
    machine.run(notebook("cell()\nshell.run_cell('%gpumem status')\ncell()\ntell(0)"))
    made = {call.name for call in machine.calls(OURS)}
    # Asked only after an error, as between torch's loading of the driver and its `cuInit`.
    made.add("cuGetErrorName")
    assert made == set(CALLS) - {"created a context"}


@pytest.mark.parametrize(
    "fault", ["lost", "unlisted", "not_supported", "size 0", f"size {2**64 - 1}", f"size {2**50}"]
)
def test_a_fault_at_each_call_leaves_the_cell_alone(machine: Machine, fault: str) -> None:
    script = f"""
    ran = {{"before": cell()}}
    for call in {CALLS}:
        put(f"{{call}} = {fault}", "faults.thread = {OURS}")
        ran[call] = cell()
    put()
    ran["after"] = cell()
    row = [it for it in gpumem.report().runs if it["device"] == "cuda:0"][-1]
    figures = [row["kept_bytes"], row["allocated_after_bytes"] == torch.cuda.memory_allocated()]
    tell([ran, figures, logged])
    """
    ran, figures, logged = machine.run(notebook(script))
    assert {call: it for call, it in ran.items() if it != UNTOUCHED} == {}
    assert figures == [0, True], "it records on"
    assert len(logged) <= 1, logged


@pytest.mark.parametrize("fault", ["lost", "unlisted"])
def test_a_fault_at_each_call_from_the_start(machine: Machine, fault: str) -> None:
    machine.put({**dict.fromkeys(CALLS, fault), "faults.thread": OURS})
    script = """
    ran = [cell(), cell()]
    row = [it for it in gpumem.report().runs if it["device"] == "cuda:0"][-1]
    tell([ran, row["device_used_after_bytes"], row["allocated_after_bytes"] >> 20, logged])
    """
    ran, device_used, allocated_mib, logged = machine.run(notebook(script))
    assert ran == [UNTOUCHED] * 2
    assert (device_used, allocated_mib) == (None, 32)
    assert len(logged) <= 1, logged


@pytest.mark.parametrize(
    "call", ["cuMemGetInfo_v2", "cuDevicePrimaryCtxGetState", "nvmlDeviceGetMemoryInfo_v2"]
)
def test_a_call_that_hangs_for_10_s_holds_no_cell_up(machine: Machine, call: str) -> None:
    script = f"""
    ran = [cell()]
    put("{call} = wait 10000", "faults.thread = {OURS}")
    ran += [cell(), cell()]
    tell([ran, logged])
    """
    ran, logged = machine.run(notebook(script))
    assert ran == [UNTOUCHED] * 3
    assert len(logged) <= 1, logged
