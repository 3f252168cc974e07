"""What happens inside a run: spikes and streams; and the figures of the driver beside it."""

from __future__ import annotations

import os

import gpumem
import pytest

from tests.support.in_process import forked_from

from . import nvidia
from .notebook import GIB, MIB, empty, last, run, started


@pytest.mark.any_card
@forked_from("torch")
def test_a_spike_of_5_ms_is_torch_s_exact_peak() -> None:
    torch = started()
    run(f"import time\nt = {empty(2048)}\ntime.sleep(0.005)\ndel t")
    row = last()
    assert row["kept_bytes"] == 0, row
    assert row["peak_exact"], row
    assert row["peak_bytes"] - row["before_bytes"] == 2 * GIB, row

    # The same inside the cache, below the peak that was: both bounds, and the truth between.
    run(f"t = {empty(1024)}\ndel t")
    row = last()
    truth = row["before_bytes"] + GIB
    assert row["peak_bytes"] <= truth <= row["peak_high_bytes"], row
    assert torch.cuda.max_memory_allocated() >= 2 * GIB, "our look has reset the user's peak"

    run(f"%%gpumem --reset-peak\nt = {empty(1024)}\ndel t")
    row = last()
    assert row["peak_exact"], row
    assert row["peak_bytes"] == truth, row


@pytest.mark.any_card
@forked_from("torch")
def test_two_streams_are_counted_together() -> None:
    torch = started()
    run("side = torch.cuda.Stream()")
    run(
        """
        %%gpumem --trace
        a = torch.ones(64 << 20, dtype=torch.uint8, device='cuda')
        with torch.cuda.stream(side):
            b = torch.ones(32 << 20, dtype=torch.uint8, device='cuda')
            side.wait_stream(torch.cuda.default_stream())
            a.record_stream(side)
            c = a[: 32 << 20] + b
        del a
        torch.cuda.synchronize()
        """
    )
    row = last()
    assert row["allocated_after_bytes"] == torch.cuda.memory_allocated(), row
    assert row["reserved_after_bytes"] == torch.cuda.memory_reserved(), row
    assert row["kept_bytes"] == 64 * MIB, row
    [found] = [it for it in gpumem.report().traces if it["run"] == row["run"]]
    assert found["peak"]["low_bytes"] <= torch.cuda.max_memory_allocated(), found["peak"]
    assert found["peak"]["high_bytes"] >= row["before_bytes"] + 128 * MIB, found["peak"]


@pytest.mark.any_card
@forked_from("torch")
def test_the_card_and_this_process_use_what_nvidia_smi_says() -> None:
    # CUDA's figures leave out what the driver keeps for itself, nvidia-smi's do not always.
    tolerance = 256 * MIB
    gpu = nvidia.first_visible()
    started()
    run(f"kept.append({empty(2048)})")
    row, said = last(), gpu.used_bytes()
    assert abs(row["device_used_after_bytes"] - said) < tolerance, (row, said)
    rose = row["device_used_after_bytes"] - row["device_used_before_bytes"]
    assert abs(rose - 2 * GIB) < tolerance, row
    # In a container with its own process ids the figure is unknown to both.
    by_driver, ours = gpu.used_by(os.getpid()), row["process_used_after_bytes"]
    if by_driver is None:
        assert ours is None, ours
    else:
        assert abs(ours - by_driver) <= 2 * MIB, (ours, by_driver)
