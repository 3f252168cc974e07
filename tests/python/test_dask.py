"""The workers of a dask cluster: real processes, on the loopback alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from tests.support.programs import run_gpumem, until

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
msgpack = pytest.importorskip("msgpack")

import gpumem.dask  # noqa: E402 (where there is no dask, nothing here is tested)
from gpumem.dask import WorkerSession, _tree  # noqa: E402 (likewise)
from gpumem.dask._worker import Side  # noqa: E402 (likewise)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from distributed import Client
    from gpumem.dask import Cluster

    from tests.python.conftest import Shell

    Started = Callable[..., tuple[Any, Cluster]]

pytestmark = [
    # tornado's and asyncio's own, when worker processes are killed or closed.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # On a slow disk.
    pytest.mark.filterwarnings("ignore:Creating scratch directories:UserWarning"),
    # distributed starts processes in a kernel that has threads.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

MIB = 1 << 20
PATIENCE = 30.0
WIDTH = 200


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start a cluster of processes with one thread each, and register it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    opened: list[tuple[Any, Any, Any]] = []

    def start(n: int, n_threads: int = 1) -> tuple[Any, Cluster]:
        cluster = distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=n_threads,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            memory_limit=0,
        )
        client = distributed.Client(cluster)
        registered = gpumem.dask.register(client, str(tmp_path / "workers"))
        opened.append((registered, client, cluster))
        return client, registered

    yield start
    for registered, client, cluster in opened:
        registered.close()
        client.close()
        cluster.close()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def use_sim() -> None:
    """Give a worker a simulated device."""
    sim.use(total_bytes=1 << 30)


def load(_: int) -> int:
    """Use memory, and give it back."""
    sim.tensor(16 << 20)
    return 0


def train_step(_: int, names: tuple[str, ...]) -> int:
    """Keep 16 MiB on some workers."""
    worker = distributed.get_worker()
    kept = sim.tensor(16 << 20)
    if str(worker.name) in names:
        if not hasattr(worker, "cache"):
            worker.cache = []
        worker.cache.append(kept)
    return 0


def keep_result(_: int) -> Any:
    """Return what stays in the memory of the worker."""
    return sim.tensor(16 << 20)


def on_each(client: Client, function: Callable[..., Any], *arguments: Any) -> None:
    """Run a task on each worker."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    tasks = [
        client.submit(function, number, *arguments, workers=[address], pure=False)
        for number, address in enumerate(workers)
    ]
    client.gather(tasks)


def addresses(client: Client) -> set[str]:
    return set(client.scheduler_info(n_workers=-1)["workers"])


def n_runs(cluster: Cluster) -> list[int]:
    found = json.loads(cluster.report().to_json())["ranks"]
    return [rank["n_steps"] for rank in found]


def test_a_task_that_leaks_is_named(started: Started, tmp_path: Path) -> None:
    client, cluster = started(2)
    client.run(use_sim)
    for number in range(10):
        # Each is another cell; the task is the same.
        with gpumem.record(f"epoch {number}"):
            for _ in range(2):
                on_each(client, load)
                on_each(client, train_step, ("1",))
    report = cluster.report()
    text = report.text(WIDTH)
    print(text)
    lines = text.splitlines()
    assert lines[0] == "2 workers"
    assert lines[2] == (
        "▲ `train_step` keeps 16 MiB a task on worker 1, held by worker state `cache`; "
        "the other keeps nothing"
    )
    assert "rank" not in text
    found = json.loads(report.to_json())
    assert [rank["name"] for rank in found["ranks"]] == ["0", "1"]
    assert (found["kind"], found["ranks"][1]["growth"]["task"]) == ("worker", "train_step")
    assert found["ranks"][0]["growth"] is None
    assert {rank["ending"] for rank in found["ranks"]} == {"running"}
    # What is saved says the same, and opens the report of the worker.
    cluster.save(tmp_path / "saved")
    shown = run_gpumem("report", tmp_path / "saved").stdout
    assert lines[2] in " ".join(shown.split())
    assert "report of worker 1" in shown
    own = gpumem.report(cluster.recordings()["1"])
    assert "get_worker().cache leaks" in own.text()
    # The task tells it, and no name beside it.
    leaks = [it for it in json.loads(own.to_json())["findings"] if it["kind"] == "leak"]
    assert [finding["path"] for finding in leaks] == [["train_step"]]


def test_a_killed_worker_is_handed_in(started: Started, tmp_path: Path) -> None:
    client, cluster = started(4)
    client.run(use_sim)
    for _ in range(10):
        with gpumem.record("epoch"):
            on_each(client, train_step, ("0", "1", "2"))
    acknowledged = {worker.epoch: worker.frames for worker in cluster.workers}
    victim = next(worker for worker in cluster.workers if worker.name == "3")
    n_sent = n_runs_in(acknowledged[victim.epoch])
    # After the last roll it uses more: that is on its disk alone.
    client.submit(use_much, workers=[victim.address], pure=False).result()
    (path,) = (tmp_path / "workers").glob(f"*-{victim.epoch[:8]}-*.gpumem")
    until(lambda: highest(path) >= 500 * MIB)
    pids = client.run(os.getpid)
    os.kill(pids[victim.address], signal.SIGKILL)
    until(lambda: len(addresses(client) - set(pids)) == 1)
    client.run(use_sim, workers=list(addresses(client) - set(pids)))
    with gpumem.record("epoch"):
        on_each(client, train_step, ("0", "1", "2"))
    report = cluster.report()
    found = json.loads(report.to_json())
    rows = {rank["name"]: rank for rank in found["ranks"]}
    assert sorted(rows) == ["0", "1", "2", "3", "3 (2)"]
    # The report says when it died, and has what it had not sent.
    assert (rows["3"]["ending"], rows["3 (2)"]["ending"]) == ("lost", "running")
    assert rows["3"]["peak_bytes"] >= 500 * MIB
    text = report.text(WIDTH)
    print(text)
    assert re.search(r"▲ worker 3 stopped without a word at [\d.]+ m?s, in run 11\n", text)
    assert "`train_step` keeps up to 16 MiB a task on 3 of 4 workers (0, 1, 2)" in text
    assert text.startswith("4 workers\n")
    # Nothing that was acknowledged is lost.
    dead = next(worker for worker in cluster.workers if worker.epoch == victim.epoch)
    assert dead.is_handed_in
    assert n_runs_in(dead.frames) > n_sent
    for worker in cluster.workers:
        if worker.ending == "running":
            assert worker.frames.startswith(acknowledged.get(worker.epoch, b""))


def test_a_worker_that_is_silent_loses_nothing(
    started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    client, cluster = started(2)
    client.run(use_sim)
    cluster.roll("before")
    pids = client.run(os.getpid)
    silent = pids[min(pids)]
    os.kill(silent, signal.SIGSTOP)
    try:
        began = time.monotonic()
        for _ in range(3):
            cluster.roll("while it is silent")
        # Two seconds, and twice half of one: not the tests' patience.
        assert time.monotonic() - began < PATIENCE / 2
    finally:
        os.kill(silent, signal.SIGCONT)
    said = [it.getMessage() for it in caplog.records if it.name == "gpumem"]
    # Three cells, and it is said once.
    assert said.count("1 of 2 workers did not answer in time, their news come later") == 1
    until(lambda: min(n_runs(cluster)) >= 2)
    cluster.roll("after")
    counts = sorted(n_runs(cluster))
    # What the silent one did meanwhile is in one run or more, and nothing came twice.
    assert counts[1] == 5
    assert 3 <= counts[0] <= 5
    assert [it.ending for it in cluster.workers] == ["running", "running"]


def test_concurrent_tasks_of_a_worker_are_judged_by_cell(started: Started, shell: Shell) -> None:
    client, cluster = started(1, n_threads=2)
    client.run(use_sim)
    shell.user_ns |= {"client": client, "keep": keep_slowly}
    shell.run("%gpumem on")
    for _ in range(10):
        outcome = shell.run("client.gather(client.map(keep, range(4), pure=False)); None")
        assert outcome.errors == ["None", "None"]
    text = cluster.report().text(WIDTH)
    print(text)
    assert "worker 0 keeps 16 MiB a run, held by worker state `cache`" in text
    assert "a task" not in text
    assert "! On 1 of 1 worker: tasks that ran at the same time in one process cannot" in text
    with pytest.warns(gpumem.RecordingWarning, match="cannot be distinguished"):
        (recording,) = cluster.recordings().values()
    assert "client.gather(client.map(keep" in gpumem.report(recording).text()


def test_results_are_named_by_what_made_them(started: Started) -> None:
    client, cluster = started(1)
    client.run(use_sim)
    kept = []
    for number in range(10):
        with gpumem.record("keep"):
            kept.append(client.submit(keep_result, number, pure=False))
            distributed.wait(kept)
    assert "results of keep_result" in cluster.report().text()
    del kept


def test_a_cluster_that_is_gone_fails_no_cell(
    started: Started, shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    client, cluster = started(1)
    shell.run("%gpumem on")
    assert shell.run("1 + 1").errors == ["None", "None"]
    client.cluster.scheduler.handlers["gpumem_roll"] = None
    for _ in range(2):
        assert shell.run("1 + 1").errors == ["None", "None"]
    said = [it for it in caplog.records if it.name == "gpumem"]
    assert len(said) == 1
    client.cluster.close()
    assert shell.run("1 + 1").errors == ["None", "None"]
    assert json.loads(cluster.report().to_json())["ranks"][0]["name"] == "0"


def test_threads_of_this_process_are_its_own_recording() -> None:
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp://"
        ) as local,
        distributed.Client(local) as client,
    ):
        cluster = gpumem.dask.register(client)
        with gpumem.record("here"):
            client.submit(sum, [1, 2]).result()
        assert json.loads(cluster.report().to_json())["ranks"] == []
        cluster.close()
    assert "here" in gpumem.report().text()


def keep_slowly(number: int) -> None:
    """Run beside another task; keep 16 MiB in every fourth."""
    worker = distributed.get_worker()
    time.sleep(0.05)
    if number == 0:
        worker.cache = [*getattr(worker, "cache", ()), sim.tensor(16 << 20)]


def use_much() -> None:
    worker = distributed.get_worker()
    worker.much = sim.tensor(500 << 20)


def n_runs_in(frames: bytes) -> int:
    with warnings.catch_warnings():
        # Of one that died it says so.
        warnings.simplefilter("ignore", gpumem.RecordingWarning)
        recording = gpumem.types.Recording.from_bytes(frames)
    return len(json.loads(gpumem.report(recording).to_json())["runs"])


def highest(path: Path) -> int:
    found = json.loads(gpumem._gpumem._ranks([str(path)]).to_json())
    return max((rank["peak_bytes"] or 0 for rank in found["ranks"]), default=0)


class Canned:
    """A recorder whose news are counted."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.n_fetched = 0

    def roll(self, cell: list[Any]) -> int:
        self.cells.append(cell[0])
        return len(self.cells)

    def fetch(self) -> bytes:
        news = self.cells[self.n_fetched :]
        self.n_fetched = len(self.cells)
        return "".join(f"{cell};" for cell in news).encode()

    def look(self, run: int) -> None:
        pass

    def left(self, epoch: str) -> None:
        pass


def test_replies_that_are_lost_apply_nothing_twice() -> None:
    recorder = Canned()
    side = Side(recorder, "cluster", "0", "tcp://here", "epoch")
    known = WorkerSession("epoch", "0", side.host, "tcp://here")

    async def play() -> None:
        for number in range(1, 30):
            acks = {"epoch": known.n_acknowledged}
            queried = {
                "by": "cluster",
                "n": number,
                "cell": [str(number), None, None, None],
                "acks": acks,
                "lost": {},
                "wait": False,
            }
            request = msgpack.packb(queried)
            replies = [await side.answer(request)]
            if number % 5 == 0:
                # The network has it twice: it is one roll.
                replies.append(await side.answer(request))
            for reply in replies:
                if number % 3 and number < 29:
                    continue
                known.take(msgpack.unpackb(reply)[4])
                known.take(msgpack.unpackb(reply)[4])

    asyncio.run(play())
    assert recorder.cells == [str(number) for number in range(1, 30)]
    assert known.frames.decode() == "".join(f"{number};" for number in range(1, 30))
    # The other cluster's client is not answered.
    foreign = msgpack.packb({"by": "another"})
    assert asyncio.run(side.answer(foreign)) == b""


def test_many_workers_are_queried_through_a_tree() -> None:
    names = [f"w{number}" for number in range(512)]
    dead, queried, direct = {"w3", "w20", "w100"}, [], []

    class Remote:
        def __init__(self, name: str, asker: str) -> None:
            self.name = name
            direct.append((asker, name))

        async def gpumem_roll(self, request: bytes, below: list[str], seconds: float) -> Any:
            if self.name in dead:
                raise OSError(self.name)
            queried.append(self.name)
            by_me = partial(Remote, asker=self.name)
            answers = await _tree.ask(by_me, _tree.twigs(below), request, seconds)
            return {"replies": [*answers.replies, request], "silent": answers.silent}

    def ask(among: list[str]) -> _tree.Answers:
        by_root = partial(Remote, asker="root")
        return asyncio.run(_tree.ask(by_root, _tree.branches(among), b"r", PATIENCE))

    answers = ask(names)
    assert sorted(queried) == sorted(set(names) - dead)
    assert len(answers.replies) == 509
    assert set(answers.silent) == dead
    # The root asks sixteen, and those below the one of them that is dead.
    assert sum(asker == "root" for asker, _ in direct) == 32
    direct.clear()
    ask(names[4:132])
    assert [asker for asker, _ in direct] == ["root"] * 128
