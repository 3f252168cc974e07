"""TensorFlow and JAX on the played card, where they are installed and start on it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .program import Program


def is_for_cuda(*packages: str) -> bool:
    """Tell whether a package is installed that brings a framework's CUDA build."""
    installed = {it.name.lower() for it in importlib.metadata.distributions() if it.name}
    return any(package in installed for package in packages)


@pytest.mark.skipif(
    not is_for_cuda("jax-cuda12-plugin", "jax-cuda13-plugin"),
    reason="JAX's CUDA plugin is not installed here: it links NVIDIA's libraries, 1 GB of them",
)
def test_jax(program: Program) -> None:
    program(
        """
    run("import jax, jax.numpy as jnp\\nkept = [jnp.zeros(1).block_until_ready()]\\n%gpumem on")
    import jax
    [device] = jax.devices()
    assert device.platform == "gpu"
    run("kept.append(jnp.zeros(64 << 20, dtype='uint8').block_until_ready())")
    assert last()["allocated_after_bytes"] == device.memory_stats()["bytes_in_use"]
    run("x = jnp.zeros(1 << 40, dtype='uint8').block_until_ready()")
    assert last()["oom"]["framework"] == "jax", last()["oom"]
    """,
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
        JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
    )


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None or is_for_cuda("tensorflow-cpu"),
    reason="TensorFlow's CUDA build is not installed here: 600 MB beside torch's",
)
def test_tensorflow(program: Program) -> None:
    program(
        """
    run("import tensorflow as tf\\nkept = []\\nkept.append(tf.zeros(1))\\n%gpumem on")
    import tensorflow as tf
    run("kept.append(tf.zeros(16 << 20))")
    told = tf.config.experimental.get_memory_info("GPU:0")["current"]
    assert last()["allocated_after_bytes"] == told, (last(), told)
    """,
        TF_FORCE_GPU_ALLOW_GROWTH="true",
    )
