"""Whether a busy program and gpumem live side by side: a soak of `GPUMEM_SOAK_SECONDS`.

Eight threads allocate, free, import, change containers and classes, train, and start and end
tasks, with a thread switch at every chance, while cells grow and looks run. The same once more
without gpumem, for half the time: what each thread computes must be the same. Training is torch's
where torch is installed. Writes counts and milliseconds as JSON, and fails where a kernel dies,
recording stops or a result differs.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import faulthandler
import importlib
import io
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
import zlib
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from gpumem import _gpumem, sim
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = float(os.environ.get("GPUMEM_SOAK_SECONDS", "60"))
# What kernels are run by: a debug build, or valgrind and a Python.
PYTHON = shlex.split(os.environ.get("GPUMEM_HARM_PYTHON", sys.executable))
SWITCH_SECONDS = 1e-6
# Results of each thread are compared every this many steps.
N_STEPS_COMPARED = 8
TOTAL_BYTES = 64 << 30
# The list that grows is cleared before the heap is all that there is to see.
N_KEPT = 50
GROWN = "%%gpumem\nkept.append(sim.tensor(1 << 20))"
IMPORTED = "soaked"


# What the threads share, and replace all the time.
POOL: list[Any] = []
STATE: dict[str, Any] = {}


def allocate(i: int) -> int:
    """Make many small objects that lead to tensors, and let them go."""
    rows = [{"row": [n, (POOL[n % 64],), {n}], "name": f"{n}"} for n in range(200 + i % 50)]
    STATE["rows"] = rows
    half = rows[::2]
    del rows
    return sum(len(row["name"]) for row in half)


def change_containers(i: int) -> int:
    """Change containers while they are gone through."""
    mapping = {n: [n] * (n % 7) for n in range(300)}
    queue: collections.deque[list[Any]] = collections.deque(maxlen=64)
    for n in list(mapping):
        if n % 3 == i % 3:
            queue.append(mapping.pop(n))
        else:
            mapping[n].append(POOL[n % 64])
    STATE["mapping"] = {**mapping, "queue": queue}
    mapping.clear()
    return sum(len(it) for it in queue)


def change_classes(i: int) -> int:
    """Make classes, with slots and without, change them, and let go of them with instances."""
    plain = type(f"Plain{i}", (), {"shared": [i]})
    slotted = type(f"Slotted{i}", (plain,), {"__slots__": ("content", "tensor")})
    instances = [slotted() for _ in range(50)]
    for n, instance in enumerate(instances):
        instance.content = {"n": n, "others": instances}
        instance.tensor = instance.more = POOL[n]
    STATE["instances"] = instances
    plain.later = property(lambda it: it.content["n"])  # type: ignore[attr-defined]
    return sum(instance.later for instance in instances)


def run_imports(i: int) -> int:
    """Import a module anew."""
    sys.modules.pop(IMPORTED, None)
    module = importlib.import_module(IMPORTED)
    values: list[int] = module.values(i)
    return sum(values)


def run_tasks(i: int) -> int:
    """Start and end tasks, in a loop of this thread's own."""

    async def task(n: int) -> int:
        await asyncio.sleep(0)
        kept = [n] * 10
        await asyncio.sleep(0)
        return sum(kept)

    async def tasks() -> int:
        return sum(await asyncio.gather(*[task(n + i) for n in range(50)]))

    return asyncio.run(tasks())


def raise_and_catch(i: int) -> int:
    """Make frames, tracebacks, names of `exec` and weak references, and let go of them."""

    class Referred:
        pass

    def descend(n: int) -> int:
        local = {"n": n, "referred": Referred()}
        exec("made = n", {}, local)  # noqa: S102 (it is what some programs do)
        if n == 0:
            raise ValueError(local["made"])
        return descend(n - 1)

    referred = Referred()
    weak = weakref.ref(referred)
    try:
        descend(10 + i % 10)
    except ValueError as error:
        n_frames = len(list(traceback.walk_tb(error.__traceback__)))
    del referred
    return n_frames + (weak() is None)


def use_devices(i: int) -> int:
    """Build graphs on the simulated device and go back through them."""
    weights = sim.tensor(1 << 16, requires_grad=True)
    result = weights
    for _ in range(20):
        result = result * 1.5
    loss = result.sum()
    loss.backward()
    weights.grad = None
    return weights.nbytes + i


def training() -> Callable[[int], int]:
    """Return a step of training, with torch where it is there."""
    try:
        import torch  # noqa: PLC0415 (it may be missing)
    except ImportError:
        weights = [random.Random(0).random() for _ in range(100)]  # noqa: S311 (no secret)

        def train(i: int) -> int:
            error = sum(weights) - i % 10
            weights[:] = [weight - 1e-4 * error for weight in weights]
            return round(sum(weights) * 1e6)

        return train

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    initial = torch.rand(32, 32, generator=generator)
    parameter = initial.clone().requires_grad_()
    optimizer = torch.optim.SGD([parameter], lr=1e-3)

    def train_with_torch(_: int) -> int:
        optimizer.zero_grad()
        chain = parameter
        for _ in range(50):
            chain = chain * 1.001 + initial
        loss = chain.pow(2).mean()
        loss.backward()
        optimizer.step()
        rounded: int = round(loss.item() * 1e3)
        return rounded

    return train_with_torch


class Worker(threading.Thread):
    """One thread, and the checksums of what it computes."""

    is_over = False

    def __init__(self, step: Callable[[int], int]) -> None:
        super().__init__(name=step.__name__)
        self.step = step
        self.checksums: list[int] = []
        self.raised: str | None = None

    def run(self) -> None:
        """Compute until all is over."""
        checksum, i = 0, 0
        try:
            while not Worker.is_over:
                for _ in range(N_STEPS_COMPARED):
                    checksum = zlib.crc32(str(self.step(i)).encode(), checksum)
                    i += 1
                self.checksums.append(checksum)
        except BaseException:  # noqa: BLE001 (it is reported)
            self.raised = traceback.format_exc()


def workers() -> list[Worker]:
    """Return the threads of the program."""
    steps = [
        allocate,
        change_containers,
        change_classes,
        run_imports,
        run_tasks,
        raise_and_catch,
        use_devices,
        training(),
    ]
    return [Worker(step) for step in steps]


def new_shell(*, is_loaded: bool) -> InteractiveShell:
    """Return a shell on a simulated device."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    sim.use(TOTAL_BYTES)
    if is_loaded:
        shell.run_line_magic("load_ext", "gpumem")
        shell.run_line_magic("gpumem", "use sim")
    shell.user_ns |= {"sim": sim, "state": STATE}
    POOL[:] = [sim.tensor(512) for _ in range(64)]
    return shell


def looks(n_cells: int) -> dict[str, int]:
    """Count the looks after cells, and those that had an answer."""
    recording = _gpumem.recording()
    n_answered = sum("kept" in recording._held_text(run, 100) for run in range(n_cells))
    return {"looks": n_cells, "answered": n_answered, "missed": n_cells - n_answered}


def session(seconds: float, *, is_loaded: bool) -> dict[str, Any]:
    """Let cells grow beside the threads; return what came of it."""
    shell = new_shell(is_loaded=is_loaded)
    kept: list[object] = []
    shell.user_ns["kept"] = kept
    threads = workers()
    for thread in threads:
        thread.start()
    spent_ms, end = [], time.monotonic() + seconds
    cell = GROWN if is_loaded else GROWN.partition("\n")[2]
    while time.monotonic() < end and not any(thread.raised for thread in threads):
        start = time.thread_time()
        shell.run_cell(cell, store_history=True)
        spent_ms.append(1e3 * (time.thread_time() - start))
        if len(kept) == N_KEPT:
            kept.clear()
    Worker.is_over = True
    for thread in threads:
        thread.join()
    ended: dict[str, Any] = {
        "cells": len(spent_ms),
        "median_ms": median(spent_ms),
        "longest_ms": max(spent_ms),
        "checksums": {thread.name: thread.checksums for thread in threads},
        "raised": [thread.raised for thread in threads if thread.raised],
    }
    if is_loaded:
        magics: Any = shell.magics_manager.registry["GpuMemMagics"]
        ended["stopped"] = magics._extension.stopped
        ended |= looks(len(spent_ms))
        counts = getattr(_gpumem, "_look_counts", dict)
        ended["reasons"] = counts()
    return ended


def in_a_kernel(how: str, seconds: float) -> dict[str, Any]:
    """Play a session in a process of its own, which must reach its end."""
    with tempfile.TemporaryDirectory() as folder:
        ended = Path(folder) / "ended.json"
        (Path(folder) / f"{IMPORTED}.py").write_text(
            "import collections.abc\ndef values(i):\n    return [n * i for n in range(100)]\n"
        )
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        kernel = subprocess.run(
            [*PYTHON, __file__, f"--{how}", str(seconds), str(ended)],
            check=False,
            env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": folder},
        )
        if kernel.returncode != 0:
            raise SystemExit(f"the kernel {how} gpumem ended with {kernel.returncode}")
        measured: dict[str, Any] = json.loads(ended.read_text())
    if measured["raised"]:
        raise SystemExit(f"a thread {how} gpumem raised\n{measured['raised'][0]}")
    return measured


def compared(recorded: dict[str, Any], plain: dict[str, Any]) -> int:
    """Return how many results were compared; each must be the same with gpumem and without."""
    n_compared = 0
    for name, checksums in recorded["checksums"].items():
        pairs = list(zip(checksums, plain["checksums"][name], strict=False))
        for at, (with_gpumem, without) in enumerate(pairs):
            if with_gpumem != without:
                raise SystemExit(f"{name} computed something else after {at} results")
        if not pairs:
            raise SystemExit(f"{name} computed nothing: set a longer GPUMEM_SOAK_SECONDS")
        n_compared += len(pairs)
    return n_compared


def measured() -> dict[str, float]:
    """Soak with gpumem and without."""
    recorded = in_a_kernel("with", SECONDS)
    if recorded["stopped"] is not None:
        raise SystemExit(f"recording stopped: {recorded['stopped']}")
    if not recorded["answered"]:
        raise SystemExit("no look had an answer")
    plain = in_a_kernel("without", SECONDS / 2)
    for reason, n in recorded["reasons"].items():
        print(f"{n} looks: {reason}")
    figures = ["cells", "looks", "answered", "missed", "median_ms", "longest_ms"]
    return {
        **{key: recorded[key] for key in figures},
        "plain_median_ms": plain["median_ms"],
        "plain_longest_ms": plain["longest_ms"],
        "results_compared": compared(recorded, plain),
    }


def main(arguments: list[str]) -> None:
    """Measure and write the figures."""
    *options, figures = arguments
    if not options:
        rounded = {key: round(value, 3) for key, value in measured().items()}
        Path(figures).write_text(json.dumps(rounded) + "\n")
        return
    how, seconds = options
    faulthandler.enable()
    sys.setswitchinterval(SWITCH_SECONDS)
    with contextlib.redirect_stdout(io.StringIO()):
        ended = session(float(seconds), is_loaded=how == "--with")
    Path(figures).write_text(json.dumps(ended))


if __name__ == "__main__":
    main(sys.argv[1:])
