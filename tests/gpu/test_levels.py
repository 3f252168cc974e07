"""The levels of a run are the framework's own figures and the driver's, at the same instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .notebook import in_a_notebook

if TYPE_CHECKING:
    from .nvidia import Gpu


def test_torch_s_figures_are_torch_s_own(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        for n_mib in (1, 300, 2048):
            run(f"%%gpumem\\nkept.append(torch.empty({n_mib} << 20, dtype=torch.uint8,"
                " device='cuda'))")
            row = last()
            assert row["kept_bytes"] == n_mib * MIB, row
            assert row["allocated_after_bytes"] == torch.cuda.memory_allocated(), row
            assert row["reserved_after_bytes"] == torch.cuda.memory_reserved(), row
            assert row["capacity_bytes"] <= total, (row, total)
            assert (row["peak_exact"], row["peak_bytes"]) == (
                True, torch.cuda.max_memory_allocated()
            ), row
        run("%%gpumem\\ndel kept[1:]")
        assert last()["kept_bytes"] == -(1 + 300 + 2048) * MIB, last()
        assert last()["allocated_after_bytes"] == torch.cuda.memory_allocated()
        """,
        framework="torch",
    )


def test_cupy_s_figures_are_its_pool_s_own(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("%%gpumem\\nkept.append(cupy.empty(300 << 20, dtype='uint8'))")
        row = last()
        assert row["kept_bytes"] == 300 * MIB, row
        assert row["allocated_after_bytes"] == pool.used_bytes(), row
        assert row["reserved_after_bytes"] == pool.total_bytes(), row
        run("%%gpumem\\ndel kept[-1]")
        assert last()["kept_bytes"] == -300 * MIB, last()
        assert last()["allocated_after_bytes"] == pool.used_bytes(), last()
        """,
        framework="cupy",
    )


def test_jax_s_figures_are_its_device_s_own(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("%%gpumem\\nkept.append(jnp.zeros(300 << 20, dtype='uint8').block_until_ready())")
        row = last()
        assert row["kept_bytes"] >= 300 * MIB, row
        assert row["allocated_after_bytes"] == stats()["bytes_in_use"], (row, stats())
        """,
        framework="jax",
    )


def test_what_the_device_and_this_process_use_is_what_nvidia_smi_says(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        # CUDA's figures leave out what the driver keeps for itself, nvidia-smi's do not always.
        TOLERANCE = 256 * MIB

        run("%%gpumem\\nkept.append(torch.empty(2 << 30, dtype=torch.uint8, device='cuda'))")
        row, said = last(), gpu.used_bytes()
        assert abs(row["device_used_after_bytes"] - said) < TOLERANCE, (row, said)
        rose = row["device_used_after_bytes"] - row["device_used_before_bytes"]
        assert abs(rose - 2 * GIB) < TOLERANCE, row
        # In a container with process ids of its own neither of us is told.
        told, ours = gpu.used_by(os.getpid()), row["process_used_after_bytes"]
        if told is None:
            assert ours is None, ours
        else:
            assert abs(ours - told) <= 2 * MIB, (ours, told)
        """,
        framework="torch",
    )
