"""What happens inside a run: spikes, streams, graphs, and a trace of all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .notebook import in_a_notebook

if TYPE_CHECKING:
    from .nvidia import Gpu


def test_a_spike_of_5_ms_is_torch_s_exact_peak(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("%%gpumem\\nt = torch.empty(2 << 30, dtype=torch.uint8, device='cuda')\\n"
            "import time\\ntime.sleep(0.005)\\ndel t")
        row = last()
        assert row["kept_bytes"] == 0, row
        assert row["peak_exact"] and row["peak_bytes"] - row["before_bytes"] == 2 * GIB, row

        # The same inside the cache, below the peak that was: both bounds, and the truth between.
        run("%%gpumem\\nt = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\\ndel t")
        row = last()
        truth = row["before_bytes"] + GIB
        assert row["peak_bytes"] <= truth <= row["peak_high_bytes"], row
        assert torch.cuda.max_memory_allocated() >= 2 * GIB, "our look has reset the user's peak"

        run("%%gpumem --reset-peak\\n"
            "t = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\\ndel t")
        row = last()
        assert row["peak_exact"] and row["peak_bytes"] == truth, row
        """,
        framework="torch",
    )


def test_a_spike_of_cupy_s_is_not_ruled_out(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("%%gpumem\\nt = cupy.zeros(2 << 30, dtype='uint8')\\n"
            "cupy.cuda.get_current_stream().synchronize()\\n"
            "import time\\ntime.sleep(0.005)\\ndel t")
        row = last()
        truth = row["before_bytes"] + 2 * GIB
        assert row["peak_bytes"] <= truth, row
        assert row["peak_high_bytes"] is None or row["peak_high_bytes"] >= truth, row
        """,
        framework="cupy",
    )


def test_a_spike_of_5_ms_is_jax_s_peak(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("%%gpumem\\nt = jnp.zeros(2 << 30, dtype='uint8').block_until_ready()\\n"
            "import time\\ntime.sleep(0.005)\\ndel t")
        row = last()
        assert row["peak_exact"], row
        assert row["peak_bytes"] == stats()["peak_bytes_in_use"], (row, stats())
        assert row["peak_bytes"] - row["before_bytes"] >= 2 * GIB, row
        """,
        framework="jax",
    )


def test_two_streams_are_counted_together(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("side = torch.cuda.Stream()")
        run("%%gpumem --trace\\n"
            "a = torch.ones(64 << 20, dtype=torch.uint8, device='cuda')\\n"
            "with torch.cuda.stream(side):\\n"
            "    b = torch.ones(32 << 20, dtype=torch.uint8, device='cuda')\\n"
            "    side.wait_stream(torch.cuda.default_stream())\\n"
            "    a.record_stream(side)\\n"
            "    c = a[: 32 << 20] + b\\n"
            "del a\\n"
            "torch.cuda.synchronize()")
        row = last()
        assert row["allocated_after_bytes"] == torch.cuda.memory_allocated(), row
        assert row["reserved_after_bytes"] == torch.cuda.memory_reserved(), row
        assert row["kept_bytes"] == 64 * MIB, row
        [trace] = [it for it in gpumem.report().traces if it["run"] == row["run"]]
        assert trace["peak"]["low_bytes"] <= torch.cuda.max_memory_allocated(), trace["peak"]
        assert trace["peak"]["high_bytes"] >= row["before_bytes"] + 128 * MIB, trace["peak"]
        """,
        framework="torch",
    )


def test_a_graph_keeps_its_pool_and_a_replay_keeps_nothing(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("x = torch.ones(64 << 20, dtype=torch.uint8, device='cuda')\\n"
            "side = torch.cuda.Stream()\\n"
            "with torch.cuda.stream(side):\\n"
            "    (x + 1) * 2\\n"
            "torch.cuda.synchronize()")
        run("%%gpumem\\ngraph = torch.cuda.CUDAGraph()\\n"
            "with torch.cuda.graph(graph):\\n"
            "    y = (x + 1) * 2")
        row = last()
        assert row["status"] == "ok", row
        assert row["allocated_after_bytes"] == torch.cuda.memory_allocated(), row
        assert row["kept_bytes"] >= 64 * MIB, row
        for _ in range(3):
            run("%%gpumem\\ngraph.replay()\\ntorch.cuda.synchronize()")
            assert last()["kept_bytes"] == 0, last()
        # The graph's pool is no cache: it survives a release, and the graph still computes.
        gpumem.release("cache")
        run("graph.replay()\\ntorch.cuda.synchronize()\\nsame = bool((y == 4).all())")
        # Kernels of a played device compute nothing.
        assert shell.user_ns["same"] or "PLAYED_CUDA_STATE" in os.environ
        """,
        framework="torch",
    )


def test_a_trace_tells_exact_levels_and_leaves_the_allocator_alone(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        import pickle, tempfile
        saved = Path(tempfile.mkdtemp()) / "trace.pickle"
        run("torch.cuda.reset_peak_memory_stats()")
        run(f"%%gpumem --trace {saved}\\n"
            "for n in range(3):\\n"
            "    kept.append(torch.empty(64 << 20, dtype=torch.uint8, device='cuda'))\\n"
            "t = torch.empty(512 << 20, dtype=torch.uint8, device='cuda')\\n"
            "del t")
        row = last()
        [trace] = [it for it in gpumem.report().traces if it["run"] == row["run"]]
        peak = torch.cuda.max_memory_allocated()
        assert trace["peak"]["low_bytes"] <= peak <= trace["peak"]["high_bytes"], (trace, peak)
        assert row["peak_exact"] and row["peak_bytes"] == peak, (row, peak)
        retained = {it["line"]: it["retained_bytes"] for it in trace["lines"]}
        assert retained == {3: 192 * MIB, 4: 0}, trace["lines"]
        assert not torch._C._cuda_isHistoryEnabled()
        assert "segments" in pickle.loads(saved.read_bytes())
        """,
        framework="torch",
    )
