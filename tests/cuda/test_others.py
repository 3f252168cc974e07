"""CuPy, JAX and TensorFlow on the card, beside torch, where they are installed and start on it."""

from __future__ import annotations

import time

import gpumem
import pytest

from tests.support.in_process import in_process

from .notebook import GIB, MIB, findings, last, names, run, started

WANTS_TOO_MUCH = {
    "torch": "torch.empty(wanted, dtype=torch.uint8, device='cuda')",
    "cupy": "cupy.empty(wanted, dtype='uint8')",
    "jax": "jnp.zeros(wanted, dtype='uint8').block_until_ready()",
}


@pytest.mark.any_card
@in_process
def test_cupy_s_figures_are_its_pool_s_own() -> None:
    pool = started("cupy").get_default_memory_pool()
    run("kept.append(cupy.empty(300 << 20, dtype='uint8'))")
    row = last()
    assert row["kept_bytes"] == 300 * MIB, row
    assert row["allocated_after_bytes"] == pool.used_bytes(), row
    assert row["reserved_after_bytes"] == pool.total_bytes(), row
    run("del kept[-1]")
    assert last()["kept_bytes"] == -300 * MIB, last()
    assert last()["allocated_after_bytes"] == pool.used_bytes(), last()


@pytest.mark.any_card
@in_process
def test_a_spike_of_cupy_s_is_not_ruled_out() -> None:
    started("cupy")
    names()["time"] = time
    run(
        "t = cupy.zeros(2 << 30, dtype='uint8')\n"
        "cupy.cuda.get_current_stream().synchronize()\ntime.sleep(0.005)\ndel t"
    )
    row = last()
    truth = row["before_bytes"] + 2 * GIB
    assert row["peak_bytes"] <= truth, row
    assert row["peak_high_bytes"] is None or row["peak_high_bytes"] >= truth, row


@pytest.mark.any_card
@in_process
def test_what_emptying_cupy_s_pool_gave_back_is_measured() -> None:
    pool = started("cupy").get_default_memory_pool()
    run("t = cupy.ones(1 << 30, dtype='uint8')\ndel t")
    before = pool.total_bytes()
    released = gpumem.release("cache")
    given = before - pool.total_bytes()
    assert given >= GIB, given
    assert released.freed == {"cuda:0": given}, (released, given)


@pytest.mark.any_card
@in_process
def test_jax_s_figures_and_its_peak_are_its_device_s_own() -> None:
    [device, *_] = started("jax").devices()
    run("kept.append(jnp.zeros(300 << 20, dtype='uint8').block_until_ready())")
    row, stats = last(), device.memory_stats()
    assert row["kept_bytes"] >= 300 * MIB, row
    assert row["allocated_after_bytes"] == stats["bytes_in_use"], (row, stats)
    names()["time"] = time
    run("t = jnp.zeros(2 << 30, dtype='uint8').block_until_ready()\ntime.sleep(0.005)\ndel t")
    row, stats = last(), device.memory_stats()
    assert row["peak_exact"], row
    assert row["peak_bytes"] == stats["peak_bytes_in_use"], (row, stats)
    assert row["peak_bytes"] - row["before_bytes"] >= 2 * GIB, row


@pytest.mark.any_card
@in_process
def test_tensorflow_s_figures_are_its_own() -> None:
    tensorflow = started("tensorflow")
    run("kept.append(tensorflow.zeros(16 << 20))")
    reported = tensorflow.config.experimental.get_memory_info("GPU:0")["current"]
    assert last()["allocated_after_bytes"] == reported, (last(), reported)


@pytest.mark.any_card
@pytest.mark.parametrize("framework", WANTS_TOO_MUCH)
@in_process
def test_running_out_is_recorded_and_the_next_cell_runs(framework: str) -> None:
    started(framework)
    run("pass")
    names()["wanted"] = wanted = 2 * last()["capacity_bytes"]
    run(f"x = {WANTS_TOO_MUCH[framework]}")
    row = last()
    assert row["status"] == "out_of_memory", row
    assert row["oom"]["framework"] == framework, row["oom"]
    reported = row["oom"]["wanted_bytes"]
    assert abs(reported - wanted) <= wanted / 100, (reported, wanted)
    assert findings("out_of_memory")
    run("x = 1")
    assert last()["status"] == "ok", last()
