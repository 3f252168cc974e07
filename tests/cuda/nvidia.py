"""What `nvidia-smi` says: the figures of the driver, without anything of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

MIB = 1 << 20


class NoGpuError(Exception):
    """There is no GPU to test with; the words say why."""


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver lists it."""

    index: str
    uuid: str

    def used_bytes(self) -> int:
        """Return what all processes use of it."""
        [[used]] = _query(f"--id={self.uuid}", "--query-gpu=memory.used")
        return int(used) * MIB

    def used_by(self, pid: int) -> int | None:
        """Return what a process uses of it; `None` where the driver does not say."""
        rows = _query(f"--id={self.uuid}", "--query-compute-apps=pid,used_gpu_memory")
        of_process = [used for of, used in rows if of == str(pid)]
        return int(of_process[0]) * MIB if of_process and of_process[0].isdigit() else None


def first_visible() -> Gpu:
    """Return the first GPU that `CUDA_VISIBLE_DEVICES` shows."""
    gpus = [Gpu(index, uuid) for index, uuid in _query("--query-gpu=index,uuid")]
    if not gpus:
        raise NoGpuError("nvidia-smi lists no GPU")
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return gpus[0]
    first = shown.split(",")[0].strip()
    for gpu in gpus:
        if first == gpu.index or (first.startswith("GPU-") and gpu.uuid.startswith(first)):
            return gpu
    raise NoGpuError(f"CUDA_VISIBLE_DEVICES={shown!r} shows no whole GPU first")


def _query(*options: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise NoGpuError("no NVIDIA driver: there is no nvidia-smi here")
    command = [program, *options, "--format=csv,noheader,nounits"]
    ran = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    if ran.returncode != 0:
        raise NoGpuError(f"nvidia-smi failed: {(ran.stdout + ran.stderr).strip()}")
    return [[field.strip() for field in line.split(",")] for line in ran.stdout.splitlines()]
