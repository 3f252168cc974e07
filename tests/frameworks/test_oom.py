"""Memory that real frameworks run out of, on the host, and what a release gives back."""

from __future__ import annotations

import importlib.util
import textwrap

import pytest

from tests.support.programs import output_of

SHELL = """
    import contextlib, gc, io, weakref
    import gpumem
    from tests.support.shell import open_shell

    shell = open_shell(loaded=False)
    shell.run_line_magic("load_ext", "gpumem")
    gc.disable()

    def run(cell):
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell(cell, store_history=True)

    def oom():
        row = [row for row in gpumem.report().runs if row["oom"]][-1]
        return row["status"], row["oom"]["framework"], row["oom"]["wanted_bytes"]
"""


def in_a_shell(framework: str, script: str) -> None:
    """Run a script in a fresh interpreter with a shell that has gpumem loaded."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed here")
    program = "\n".join(textwrap.dedent(part) for part in (SHELL, script))
    output_of("-c", program)


PLANTED = """
    import torch
    planted = []
    def plant(*shape):
        tensor = torch.ones(*shape, requires_grad=True)
        planted.append(weakref.ref(tensor))
        return tensor
    shell.user_ns.update(plant=plant, torch=torch)
    run("def step(n):\\n"
        "    weights, batch = plant(256, 256), plant(256, 256)\\n"
        "    loss = (weights @ batch).sum()\\n"
        "    return torch.empty(n, dtype=torch.uint8)")
    def alive():
        return sum(ref() is not None for ref in planted)
"""

TORCH_ERRORS = {
    "plain": "step(1 << 56)",
    "chained": "try:\\n    step(1 << 56)\\nexcept RuntimeError as e:\\n    raise ValueError from e",
}


@pytest.mark.parametrize("error", TORCH_ERRORS)
def test_a_release_lets_go_of_torchs_tensors(error: str) -> None:
    in_a_shell(
        "torch",
        PLANTED
        + f"""
    run("%%gpumem\\n{TORCH_ERRORS[error]}")
    assert oom() == ("out_of_memory", "torch", 1 << 56), oom()
    assert alive() == 2
    run("%gpumem release traceback")
    assert alive() == 0
""",
    )


def test_a_worker_of_a_data_loader_is_understood() -> None:
    in_a_shell(
        "torch",
        """
    import torch
    class Large(torch.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, idx):
            return torch.empty(1 << 56, dtype=torch.uint8)
    shell.user_ns["loader"] = torch.utils.data.DataLoader(Large(), num_workers=1)
    run("%%gpumem\\nnext(iter(loader))")
    assert oom() == ("out_of_memory", "torch", 1 << 56), oom()
""",
    )


def test_jax_runs_out_on_the_host() -> None:
    in_a_shell(
        "jax",
        """
    import jax.numpy
    shell.user_ns["jax"] = jax
    run("%%gpumem\\njax.numpy.zeros((1 << 46,), dtype='uint8').block_until_ready()")
    assert oom() == ("out_of_memory", "jax", 1 << 46), oom()
""",
    )


def test_numpy_runs_out_on_the_host() -> None:
    in_a_shell(
        "numpy",
        """
    import numpy
    shell.user_ns["numpy"] = numpy
    run("%%gpumem\\nnumpy.empty((1 << 56,), dtype='uint8')")
    # It says how much only when it is shown, by code of its own that is not run here.
    assert oom() == ("out_of_memory", "numpy", None), oom()
    [found] = [it for it in gpumem.report().findings if it.kind == "out_of_memory"]
    assert found.device == "host"
""",
    )
