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


# Memory.


@pytest.mark.usefixtures("here")
def test_torch_s_allocator_takes_segments_and_gives_them_back() -> None:
    x = of_bytes(300 * MIB)
    assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 300 * MIB
    del x
    before, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] - before == 300 * MIB
    assert total == 16384 * MIB


@pytest.mark.usefixtures("here")
def test_memory_that_nobody_touches_costs_the_host_nothing() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * 4096

    of_bytes(1)
    before = resident_bytes()
    x = torch.zeros(6 << 30, dtype=torch.uint8, device="cuda").fill_(1)
    assert resident_bytes() - before < 64 * MIB
    del x


def test_memory_runs_out_with_torch_s_own_text(here: Machine) -> None:
    here.card(0, total_mib=4096)
    here.others(0, {4711: 1000})
    kept = of_bytes(1 << 30)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        of_bytes(2 << 30)
    told = str(caught.value)
    assert "Tried to allocate 2.00 GiB" in told
    assert "total capacity of 4.00 GiB of which 1.73 GiB is free" in told
    assert "Process 4711 has 1000.00 MiB memory in use" in told
    assert "this process has 1.29 GiB memory in use" in told
    del kept


@pytest.mark.usefixtures("here")
def test_graphs_have_their_pool() -> None:
    x = torch.zeros(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [of_bytes(10 * MIB), x + 1]
    graph.replay()
    torch.cuda.synchronize()
    segments = torch.cuda.memory_snapshot()
    sizes = {it["segment_pool_id"]: it["total_size"] for it in segments}
    assert len(sizes) == 2
    assert sum(it["total_size"] for it in segments if it["segment_pool_id"] != (0, 0)) == 12 * MIB
    del kept


@pytest.mark.parametrize("backend", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_other_allocators_of_torch_count_as_well(machine: Machine, backend: str) -> None:
    script = """
    x = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    free, total = torch.cuda.mem_get_info()
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    tell([total - free >> 20, total - torch.cuda.mem_get_info()[0] >> 20])
    """
    used, after = machine.run(script, PYTORCH_CUDA_ALLOC_CONF=backend)
    assert 256 <= used <= 288
    assert after == 0


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


# Devices.


@pytest.mark.parametrize(
    ("visible", "expected"), [("2,0", [300, 100]), ("GPU-c,GPU-b", [300, 200]), ("", [])]
)
def test_the_environment_chooses_the_cards(
    machine: Machine, visible: str, expected: list[int]
) -> None:
    machine.cards(3)
    for gpu, (start, total_mib) in enumerate(zip("abc", (100, 200, 300), strict=True)):
        uuid = f"GPU-{start}0000000-0000-0000-0000-000000000000"
        machine.card(gpu, total_mib=total_mib, uuid=uuid)
    script = """
    n_cards = torch.cuda.device_count()
    tell([torch.cuda.get_device_properties(idx).total_memory >> 20 for idx in range(n_cards)])
    """
    assert machine.run(script, CUDA_VISIBLE_DEVICES=visible) == expected


@pytest.mark.parametrize(
    ("environment", "expected"), [({}, 4864), ({"CUDA_VISIBLE_DEVICES": "MIG-bbbb"}, 9728)]
)
def test_a_part_of_a_divided_card_is_a_device(
    machine: Machine, environment: dict[str, str], expected: int
) -> None:
    machine.divide(0, [("MIG-aaaa", 4864), ("MIG-bbbb", 9728)])
    script = "tell([torch.cuda.device_count(), torch.cuda.mem_get_info()[1] >> 20])"
    assert machine.run(script, **environment) == [1, expected]


def test_cards_copy_to_each_other(machine: Machine) -> None:
    machine.cards(2)
    script = """
    x = torch.arange(1000).to("cuda:0")
    y = x.to("cuda:1")
    pinned = torch.arange(1000).pin_memory()
    tell([y.cpu().tolist() == list(range(1000)), pinned.is_pinned(),
          [torch.cuda.memory_allocated(idx) for idx in range(2)]])
    """
    assert machine.run(script) == [True, True, [8192, 8192]]


def test_a_child_that_is_forked_after_the_start_is_refused(machine: Machine) -> None:
    script = """
    import ctypes, os
    torch.empty(1, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    if os.fork() == 0:
        os._exit(driver.cuDeviceGetCount(ctypes.byref(count)))
    _, status = os.wait()
    tell([os.waitstatus_to_exitcode(status), driver.cuDeviceGetCount(ctypes.byref(count))])
    """
    not_initialised = 3
    assert machine.run(script) == [not_initialised, 0]


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


def test_a_fault_may_be_for_some_threads_only(here: Machine) -> None:
    here.fail("cuMemGetInfo_v2", "lost", thread="gpumem-")
    assert torch.cuda.mem_get_info()[0] > 0


def test_a_call_that_hangs_never_returns_and_the_log_tells_of_it(machine: Machine) -> None:
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
