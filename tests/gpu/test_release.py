"""Memory that runs out is recorded and explained, and what is given back is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .notebook import in_a_notebook

if TYPE_CHECKING:
    from .nvidia import Gpu

WANTS_TOO_MUCH = {
    "torch": "torch.empty({n}, dtype=torch.uint8, device='cuda')",
    "cupy": "cupy.empty({n}, dtype='uint8')",
    "jax": "jnp.zeros({n}, dtype='uint8').block_until_ready()",
}


@pytest.mark.parametrize("framework", WANTS_TOO_MUCH)
def test_running_out_is_recorded_and_the_next_cell_runs(gpu: Gpu, framework: str) -> None:
    too_much = WANTS_TOO_MUCH[framework].format(n="wanted")
    in_a_notebook(
        gpu,
        f"""
        wanted = 2 * total
        shell.user_ns["wanted"] = wanted
        run("%%gpumem\\nx = {too_much}")
        row = last()
        assert row["status"] == "out_of_memory", row
        assert row["oom"]["framework"] == {framework!r}, row["oom"]
        told = row["oom"]["wanted_bytes"]
        assert abs(told - wanted) <= wanted / 100, (told, wanted)
        kinds = [it.kind for it in gpumem.report().findings]
        assert "out_of_memory" in kinds, kinds
        run("%%gpumem\\nx = 1")
        assert last()["status"] == "ok", last()
        """,
        framework=framework,
    )


def test_a_failed_step_is_held_by_its_error_until_it_is_released(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        before = torch.cuda.memory_allocated()
        shell.user_ns["wanted"] = 2 * total
        run("def step():\\n"
            "    batch = torch.ones(512 << 20, dtype=torch.uint8, device='cuda')\\n"
            "    return torch.empty(wanted, dtype=torch.uint8, device='cuda')")
        run("%%gpumem\\nstep()")
        assert last()["status"] == "out_of_memory", last()
        assert torch.cuda.memory_allocated() - before == 512 * MIB
        [finding] = [it for it in gpumem.report().findings if it.kind == "out_of_memory"]
        assert finding.device == DEVICE, finding
        held = {it.kind: it.n_bytes for it in gpumem.holders().roots if it.device == DEVICE}
        assert held.get("traceback") == 512 * MIB, held

        released = gpumem.release("traceback")
        assert released.freed == {DEVICE: 512 * MIB}, released
        assert torch.cuda.memory_allocated() == before
        run("%%gpumem\\nbatch = torch.ones(512 << 20, dtype=torch.uint8, device='cuda')")
        assert (last()["status"], last()["kept_bytes"]) == ("ok", 512 * MIB), last()
        """,
        framework="torch",
    )


def test_what_emptying_torch_s_cache_gave_back_is_measured(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("t = torch.ones(1 << 30, dtype=torch.uint8, device='cuda')\\ndel t")
        before = torch.cuda.memory_reserved()
        free = torch.cuda.mem_get_info()[0]
        released = gpumem.release("cache")
        given = before - torch.cuda.memory_reserved()
        assert given >= GIB and released.freed == {DEVICE: given}, (released, given)
        assert torch.cuda.mem_get_info()[0] - free >= given, "the driver has it again"
        """,
        framework="torch",
    )


def test_what_emptying_cupy_s_pool_gave_back_is_measured(gpu: Gpu) -> None:
    in_a_notebook(
        gpu,
        """
        run("t = cupy.ones(1 << 30, dtype='uint8')\\ndel t")
        before = pool.total_bytes()
        released = gpumem.release("cache")
        given = before - pool.total_bytes()
        assert given >= GIB and released.freed == {DEVICE: given}, (released, given)
        """,
        framework="cupy",
    )
