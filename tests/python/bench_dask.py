"""What a roll adds to a cell, against two calls of ``client.run``, and what 512 workers cost.

The clusters are real processes on the loopback. The many workers are simulated: one process answers
as 512, each with a server and a reply of its own; this process stands for the scheduler. Writes
medians as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import gpumem
import gpumem.dask
import msgpack
from distributed import Client, LocalCluster
from distributed.core import ConnectionPool, Server
from distributed.protocol.core import dumps
from gpumem.dask import _tree, _worker

N_CELLS = 100
N_MANY = 512
N_ROLLS = 30
REPLY = b"x" * 4200
"""128 points of each of four devices take so much (docs/clusters.md)."""


def nothing() -> None:
    """Stand for what a user gives to ``client.run``."""


def cells(n_workers: int) -> dict[str, float]:
    """Time cells without and with a roll, and the calls, in turn."""
    local = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        memory_limit=0,
    )
    with local, Client(local) as client:
        cluster = gpumem.dask.register(client)

        def timed(body: Any) -> float:
            began = time.perf_counter()
            body()
            return (time.perf_counter() - began) * 1000

        def run_twice() -> None:
            client.run(nothing)
            client.run(nothing)

        times: dict[str, list[float]] = {"roll": [], "run": []}
        for _ in range(N_CELLS):
            times["roll"].append(timed(lambda: cluster.roll("cell")))
            times["run"].append(timed(run_twice))
        assert all(it.n_acknowledged >= N_CELLS for it in cluster.workers), cluster.workers
        cluster.close()
    roll, run = median(times["roll"]), median(times["run"])
    return {
        f"added_{n_workers}_ms": round(roll, 2),
        f"run_twice_{n_workers}_ms": round(run, 2),
        f"ratio_{n_workers}": round(roll / run, 2),
    }


class Canned:
    """A recorder with a reply of the usual size in each interval."""

    def roll(self, cell: list[Any]) -> int:  # noqa: ARG002 (as it is called)
        """End an interval."""
        return 0

    def fetch(self) -> bytes:
        """Return what is new."""
        return REPLY

    def look(self, run: int) -> None:
        """Search for nothing."""

    def left(self, epoch: str) -> None:
        """Know no other workers."""


class Worker:
    """One of the many."""

    def __init__(self, number: int) -> None:
        self.server: Any = Server({"gpumem_roll": self.roll})
        self.side = _worker.Side(Canned(), "bench", str(number), "", f"epoch-{number}")

    async def roll(self, request: bytes, below: list[str], seconds: float) -> dict[str, Any]:
        """Answer as a worker's plugin does."""
        parts = _tree.twigs(list(below))
        answers = await _tree.ask(self.server.rpc, parts, request, seconds)
        own = await self.side.answer(request)
        return {"replies": [*answers.replies, own], "silent": answers.silent}


async def serve() -> None:
    """Be 512 workers; print their addresses."""
    workers = [Worker(number) for number in range(N_MANY)]
    for worker in workers:
        await worker.server.listen("tcp://127.0.0.1:0")
    print(json.dumps([worker.server.address for worker in workers]), flush=True)
    await asyncio.Event().wait()


async def ask_many(addresses: list[str]) -> dict[str, float]:
    """Ask them all in each cell, as the scheduler does; measure this process's CPU."""
    rpc = ConnectionPool(limit=1024)
    await rpc.start()
    acks: dict[str, int] = {}
    cpu, wall = [], []
    for number in range(1, N_ROLLS + 1):
        cell = ["cell", None, None, None]
        query = {"by": "bench", "n": number, "cell": cell, "acks": acks, "lost": {}, "wait": False}
        request = msgpack.packb(query)
        began, began_cpu = time.perf_counter(), time.process_time()
        answers = await _tree.ask(rpc, _tree.branches(addresses), request, 30)
        # As it goes on to the client.
        b"".join(dumps({"replies": answers.replies, "silent": answers.silent}))
        cpu.append((time.process_time() - began_cpu) * 1000)
        wall.append((time.perf_counter() - began) * 1000)
        assert len(answers.replies) == N_MANY, answers.silent
        for reply in answers.replies:
            epoch, *_, news, _left = msgpack.unpackb(reply)
            acks[epoch] = news[-1][0]
    await rpc.close()
    # The first ones connect.
    return {
        "root_512_ms": round(median(cpu[3:]), 2),
        "wall_512_ms": round(median(wall[3:]), 1),
    }


def many() -> dict[str, float]:
    """Start the process that is 512 workers, and ask them."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as workers:
        assert workers.stdout is not None
        try:
            return asyncio.run(ask_many(json.loads(workers.stdout.readline())))
        finally:
            workers.kill()


def main(figures: Path) -> None:
    """Measure all."""
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    os.environ.pop("GPUMEM_PROCESSES", None)
    found = cells(2) | cells(8) | many()
    figures.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        asyncio.run(serve())
    else:
        main(Path(sys.argv[1]))
