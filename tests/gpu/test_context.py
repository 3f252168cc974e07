"""No context is created by us: not one byte of the GPU is this process's for being watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .notebook import in_a_notebook

if TYPE_CHECKING:
    from .nvidia import Gpu


def test_loading_and_recording_take_nothing_of_the_gpu(gpu: Gpu) -> None:
    before = gpu.used_bytes()
    in_a_notebook(
        gpu,
        f"""
        # This one waits for a driver that takes its time to start.
        run("%gpumem status")
        run("%gpumem on")
        for n in range(10):
            run(f"x = {{n}}")
        run("%gpumem status\\n%gpumem\\n%gpumem_report --text")

        # Other processes may come and go; a context would be this one's, and hundreds of MiB.
        assert not gpu.used_by(os.getpid()), gpu.used_by(os.getpid())
        assert gpu.used_bytes() - {before} < 64 * MIB, "somebody has a context now"
        maps = Path("/proc/self/maps")
        if maps.exists():
            assert "libcuda.so" not in maps.read_text()

        rows = [row for row in gpumem.report().runs if row["device"] == DEVICE]
        assert len(rows) == 10, [row["device"] for row in gpumem.report().runs]
        for row in rows:
            assert row["process_used_after_bytes"] in (0, None), row
            assert row["device_used_after_bytes"] is not None, row
        """,
    )
