"""No observer effect: CUDA, its contexts, its peaks and forks are as they are without gpumem."""

from __future__ import annotations

import os
from pathlib import Path

import gpumem
import pytest

from tests.support.in_process import forked_from, in_process

from . import nvidia
from .notebook import GIB, MIB, check, is_of_card, last, machine, names, rows, run, shell, started


@pytest.mark.any_card
@in_process
def test_loading_and_recording_take_nothing_of_the_card() -> None:
    gpu = nvidia.first_visible()
    before = gpu.used_bytes()
    # This one waits for a driver that takes its time to start.
    run("%gpumem status")
    run("%gpumem on")
    for n in range(10):
        run(f"x = {n}")
    run("%gpumem status\n%gpumem\n%gpumem_report --text")

    # Other processes may come and go; a context would be this one's, and hundreds of MiB.
    assert not gpu.used_by(os.getpid()), gpu.used_by(os.getpid())
    assert gpu.used_bytes() - before < 64 * MIB, "somebody has a context now"
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert "libcuda.so" not in maps.read_text("utf-8")

    recorded = [row for row in gpumem.report().runs if is_of_card(row)]
    assert len(recorded) >= 10, recorded
    for row in recorded:
        assert row["process_used_after_bytes"] in (0, None), row
        assert row["device_used_after_bytes"] is not None, row


@in_process
def test_torch_is_not_started_and_a_fork_still_works() -> None:
    run("import torch\n%gpumem on")
    import torch

    # Not even the number of cards is read: no fork survives a driver that has started.
    for n in range(10):
        run(f"%%gpumem --reset-peak\nx = {n}")
    run("%%gpumem --trace\nx = 1")
    assert "nothing to trace here" in shell().lines[-1]
    run("%gpumem status\n%gpumem\n%gpumem why\n%gpumem who\n%gpumem_report --text")
    gpumem.holders()
    gpumem.footprint(torch.nn.Linear(8, 8))
    gpumem.release("all")
    assert not torch.cuda.is_initialized()
    used = last("nvml:0") if rows("nvml:0") else last("cuda:0")
    # A context costs 300 MiB here, and nobody has one.
    assert used["device_used_after_bytes"] == 0, used

    # What a launcher of several processes asks for, and what it does then.
    pid = os.fork()
    if pid == 0:
        assert not torch.cuda._is_in_bad_fork()
        assert torch.cuda.device_count() == 1
        assert torch.ones(4, device="cuda").device.type == "cuda"
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not torch.cuda.is_initialized()


@forked_from("torch")
def test_once_it_runs_torch_itself_refuses_a_fork() -> None:
    run("import torch\n%gpumem on\nkept = torch.empty(1, device='cuda')")
    import torch

    run("kept = torch.empty(8 << 20, device='cuda')")
    pid = os.fork()
    if pid == 0:
        try:
            torch.ones(4, device="cuda")
        except RuntimeError as error:
            os._exit(0 if "Cannot re-initialize CUDA in forked subprocess" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    # This process goes on.
    run("kept = torch.empty(9 << 20, device='cuda')")
    check()


@forked_from("torch")
def test_no_context_on_another_card() -> None:
    machine().cards(4)
    run("import torch\n%gpumem on\nkept = [torch.empty(1, device='cuda:2')]")
    import torch

    for n_mib in (1, 64, 300):
        run(
            f"%%gpumem --trace --holders\n"
            f"kept.append(torch.empty({n_mib} << 20, dtype=torch.uint8, device='cuda:2'))"
        )
        run("%gpumem status\n%gpumem\n%gpumem why\n%gpumem who\n%gpumem_report --text")
    assert run("x = torch.empty(9 << 30, dtype=torch.uint8, device='cuda:2')") == (
        "OutOfMemoryError"
    )
    gpumem.release("traceback", "outputs", "cycles", "cache")
    run("y = 1")
    used = [last(f"cuda:{idx}")["device_used_after_bytes"] for idx in range(4)]
    assert used[2] > 600 * MIB, used
    # torch itself makes the first card current at its start, and opens no context for that.
    assert (used[1], used[3]) == (0, 0), used
    assert torch.cuda.current_device() == 0


@forked_from("torch")
def test_the_peaks_of_the_user_are_the_users() -> None:
    torch = started()

    def peaks() -> dict[str, int]:
        stats = torch.cuda.memory_stats()
        # Pieces come and go with what a cell itself allocates.
        return {
            key: value
            for key, value in stats.items()
            if key.endswith(".peak") and not key.startswith("inactive_split")
        }

    run("t = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\ndel t")
    before = peaks()
    assert before["allocated_bytes.all.peak"] == GIB + 512
    for cell in (
        "x = 1",
        "%%gpumem\nt = torch.empty(4 << 20, device='cuda')\ndel t",
        "%%gpumem --trace\nt = torch.empty(4 << 20, device='cuda')\ndel t",
    ):
        run(cell)
    run("%gpumem\n%gpumem status\n%gpumem_report --text")
    gpumem.holders()
    assert peaks() == before, {
        key: (before[key], now) for key, now in peaks().items() if now != before[key]
    }
    # On the user's own request alone.
    run("%%gpumem --reset-peak\nx = 1")
    assert torch.cuda.max_memory_allocated() == 512


@forked_from("torch")
def test_a_stream_and_a_capture_under_way_are_left_alone() -> None:
    torch = started()
    run(
        "x = torch.ones(1 << 20, device='cuda')\nside = torch.cuda.Stream()\n"
        "with torch.cuda.stream(side):\n    x + 1\ntorch.cuda.synchronize()\n"
        "graph = torch.cuda.CUDAGraph()"
    )
    # A capture that spans marks and blocks: a call that is not allowed in it would end it.
    assert (
        run(
            "import gpumem\n"
            "with torch.cuda.graph(graph):\n"
            "    a = x + 1\n    gpumem.mark()\n"
            "    with gpumem.record('inner'):\n        b = a * 2\n"
            "    gpumem.mark()\n"
            "graph.replay()"
        )
        is None
    )
    row = check()
    assert row["status"] == "ok", row
    run("torch.cuda.set_stream(side)")
    assert torch.cuda.current_stream() == names()["side"]
    run("y = 1")
    assert torch.cuda.current_stream() == names()["side"]
