"""No observer effect: what the user has imported is left as it was, with the real frameworks."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec

import pytest

from tests.support.programs import output_of

RECORDED = """
    from tests.support.shell import open_shell

    shell = open_shell(loaded=False)

    def reason(source):
        from gpumem import _gpumem
        return {name: reason for name, _, reason in _gpumem.source_states()}[source]

    shell.run_line_magic("load_ext", "gpumem")
    shell.run_line_magic("gpumem", "on")
    for _ in range(10):
        assert shell.run_cell("%%gpumem --reset-peak\\n1 + 1").success
    for magic, line in [("gpumem", "status"), ("gpumem", ""), ("gpumem_report", "--text")]:
        shell.run_line_magic(magic, line)
"""


def after_ten_recorded_cells(imports: str, script: str) -> None:
    """Import a framework, record ten cells in a fresh interpreter, then run a script there."""
    parts = [textwrap.dedent(part) for part in (imports, RECORDED, script)]
    output_of("-c", "\n".join(parts))


def test_jax_can_still_be_distributed() -> None:
    script = """
        from jax._src import xla_bridge
        assert not xla_bridge.backends_are_initialized()
        assert reason("jax") == "imported, but no backend is initialised yet"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        jax.distributed.initialize(address, num_processes=1, process_id=0)
        assert jax.process_count() == 1
        jax.distributed.shutdown()
    """
    after_ten_recorded_cells("import socket, jax", script)


def test_jax_on_the_cpu_is_reported_as_such() -> None:
    script = """
        assert shell.run_cell("kept = jax.numpy.ones(1 << 20)").success
        assert jax.devices()[0].memory_stats() is None
        assert reason("jax") == "runs on the CPU, where it does not count its memory"
    """
    after_ten_recorded_cells("import builtins, jax; builtins.jax = jax", script)


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed here")
def test_tensorflow_can_still_be_configured() -> None:
    script = """
        from tensorflow.python.eager import context
        assert context.context_safe() is None
        assert reason("tensorflow") == "imported, but not initialised yet"
        # Refused for what the device is. One that is initialised is refused as such, before.
        cpu = tf.config.list_physical_devices("CPU")[0]
        try:
            tf.config.experimental.set_memory_growth(cpu, True)
        except ValueError as error:
            assert "non-GPU" in str(error), error
        parts = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, parts)
        assert len(tf.config.list_logical_devices("CPU")) == 2
        assert reason("tensorflow") == "runs on the CPU, where it does not count its memory"
    """
    after_ten_recorded_cells("import tensorflow as tf", script)


def test_torch_can_still_be_forked() -> None:
    script = """
        # What accelerate.notebook_launcher asks of the kernel before it forks.
        assert not torch.cuda.is_initialized()
        assert not torch.xpu.is_initialized()
        assert reason("torch") == "imported, but CUDA is not initialised yet"
        pid = os.fork()
        if pid == 0:
            is_good = not torch.cuda._is_in_bad_fork() and bool(torch.ones(4).sum() == 4)
            os._exit(0 if is_good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        # No extension's name, and none that was imported for the question.
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    """
    after_ten_recorded_cells("import os, torch", script)
