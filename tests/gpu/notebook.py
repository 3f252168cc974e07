"""A fresh interpreter for each test, so that its contexts, caches and peaks are its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .nvidia import Gpu

CANNOT = 77
"""How a script ends that cannot show anything here; the last thing that it printed says why."""

# The shell comes first: gpumem is loaded before any framework is imported.
SHELL = """
    import contextlib, gc, io, os, sys, time
    from pathlib import Path
    import gpumem
    import nvidia
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    MIB, GIB = 1 << 20, 1 << 30
    DEVICE = "cuda:0"
    gpu = nvidia.Gpu(*os.environ["GPUMEM_TEST_GPU"].split())

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "gpumem")

    def run(cell):
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell(cell, store_history=True)

    def last(label=None):
        rows = gpumem.report().runs
        return [row for row in rows if row["device"] == DEVICE and row["label"] == label][-1]

    def cannot(why):
        print(why)
        sys.exit(77)
"""

# Each starts its framework on the GPU in a cell, as a notebook does.
STARTS = {
    "torch": """
        import torch
        if not torch.cuda.is_available():
            cannot(f"torch {torch.__version__} sees no GPU")
        run("import torch\\nkept = [torch.empty(1, device='cuda')]")
        total = torch.cuda.mem_get_info()[1]
    """,
    "cupy": """
        import cupy
        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            cannot(f"CuPy {cupy.__version__} sees no GPU: {error}")
        run("import cupy\\nkept = [cupy.empty(1)]\\npool = cupy.get_default_memory_pool()")
        pool = cupy.get_default_memory_pool()
        total = cupy.cuda.runtime.memGetInfo()[1]
    """,
    "jax": """
        import jax
        devices = [it for it in jax.devices() if it.platform == "gpu"]
        if not devices or devices[0].memory_stats() is None:
            cannot(f"JAX {jax.__version__} sees no GPU: {jax.devices()}")
        run("import jax, jax.numpy as jnp\\nkept = [jnp.zeros(1).block_until_ready()]")
        stats = lambda: devices[0].memory_stats()
        total = stats()["bytes_limit"]
    """,
}


def in_a_notebook(gpu: Gpu, script: str, *, framework: str | None = None) -> None:
    """Run a script after the shell, and after the start of a framework if one is named."""
    if framework is not None and importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed here")
    start = "" if framework is None else STARTS[framework]
    program = "\n".join(textwrap.dedent(part) for part in (SHELL, start, script))
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": gpu.uuid,
        "GPUMEM_TEST_GPU": f"{gpu.index} {gpu.uuid}",
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep),
        # Else JAX takes three quarters of the GPU at once, and no level would move.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=False,
        env=environment,
        text=True,
        timeout=230,
    )
    if ran.returncode == CANNOT:
        pytest.skip(ran.stdout.splitlines()[-1])
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
