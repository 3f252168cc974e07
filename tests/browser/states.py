"""The sessions behind the twelve states of the report, recorded as a user would run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.reports import recording_in

from .live import record

if TYPE_CHECKING:
    from pathlib import Path

    import gpumem

MIB = 1 << 20
LOAD = "%load_ext gpumem\nimport gpumem\nfrom gpumem import sim\nsim.use(16 << 30{})\nM = 1 << 20"
MODEL = [
    (
        "class Net:\n    def __init__(self):\n"
        "        self.head = sim.tensor(120*M, requires_grad=True)\n"
        "        self.body = sim.tensor(1000*M, requires_grad=True)\n"
        "net = Net()"
    ),
    "opt = [sim.tensor(1152*M) for moment in ('first', 'second')]",
    "val_set = sim.tensor(480*M)",
]
VALIDATE = "x = sim.tensor(120*M)\nval_losses.append((x * net.head).sum())"
FIXED = "x = sim.tensor(120*M)\nval_losses.append((x * net.head).sum().detach())"
TRAIN = "batch = sim.tensor(700*M)\nloss = (batch * net.body).sum().detach()\ndel batch"
CACHE = "if len(shapes) < 4:\n    shapes[len(shapes)] = sim.tensor(112*M)"
EMBED = "embeddings = [sim.tensor(512*M) for part in range(3)]"
STEPS = "for batch in gpumem.steps(range(16)):\n    preds.append(sim.tensor(16*M))"
RANK = "parts = [sim.tensor(512*M) for part in range(32)]"
SHOW = "sim.tensor(96*M)"
LEAK = [
    LOAD.format(""),
    "%config GpuMem.quiet = True",
    "%gpumem on",
    *MODEL,
    "val_losses, preds, shapes = [], [], {}",
    *[TRAIN, VALIDATE] * 3,
    *[CACHE] * 6,
    *[VALIDATE, TRAIN] * 3,
    EMBED,
    *[VALIDATE] * 4,
    STEPS,
    *[SHOW] * 3,
    *[EMBED, VALIDATE] * 2,
    *[VALIDATE] * 3,
    RANK,
    VALIDATE,
]
HEALTHY = [
    *LEAK[:3],
    *MODEL,
    "shapes = {}",
    *[TRAIN] * 12,
    *[CACHE] * 12,
    "print('accuracy', 0.9)",
    *[TRAIN] * 5,
]
N_CELLS = 120
MANY = [
    *LEAK[:3],
    "net = sim.tensor(1152*M)\nkept = []",
    *[
        source
        for n in range(8)
        for source in (
            *[f"w{idx} = sim.tensor({8 + idx % 5}*M)" for idx in range(N_CELLS - 4)],
            *["kept.append(sim.tensor(64*M))"] * 8,
        )
    ],
]
EIGHT = [
    LOAD.format(", n_devices=8"),
    *LEAK[1:3],
    "shards = [sim.tensor(6000*M, device=n) for n in range(8)]",
    "kv_log = []",
    *["warm = [sim.tensor(512*M, device=n) for n in range(8)]"] * 3,
    *["kv_log.append(sim.tensor(320*M, device=7))"] * 12,
    "out = sim.tensor(900*M, device=7)\ndel out",
]
RERUN = [
    *LEAK[:3],
    *MODEL,
    "val_losses, preds, shapes = [], [], {}",
    *[TRAIN, FIXED] * 6,
    EMBED,
    STEPS,
    *[SHOW] * 2,
    "average = [sim.tensor(192*M), sim.tensor(192*M)]",
    *[FIXED] * 4,
]
# The state of the kernel while a cell is still running.
RUNNING = "state = sim.tensor(75*M)\ngpumem.mark('half')\ngpumem.recording().save({!r})"


def states(folder: Path) -> dict[str, gpumem.types.Recording]:
    """Record every session, and return it by name."""
    sessions = {"leak": LEAK, "healthy": HEALTHY, "many": MANY, "eight": EIGHT, "rerun": RERUN}
    for name, cells in sessions.items():
        record(cells, folder / name)
    running = folder / "running"
    record([*LEAK, RUNNING.format(str(running))], folder / "ended")
    return {name: recording_in(folder / name) for name in (*sessions, "running")}
