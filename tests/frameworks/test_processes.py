"""Processes that torch, joblib and accelerate start record themselves: who leaks is named."""

from __future__ import annotations

import json
import sys
import textwrap
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.programs import output_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux reports shares of memory")

DATA = """
    import time
    import torch
    from torch.utils.data import Dataset, get_worker_info

    class Leaking(Dataset):
        def __init__(self, n):
            self.n, self.kept = n, []

        def __len__(self):
            return self.n

        def __getitem__(self, index):
            if get_worker_info().id == 3:
                self.kept.append(b"x" * (6 << 20))
            time.sleep(0.01)
            return torch.zeros(1000)

    def work(number):
        import gpumem

        kept = []
        for _ in range(60):
            if number == 1:
                kept.append(b"x" * (4 << 20))
            time.sleep(0.02)
            gpumem.mark()

    def train():
        import os

        work(int(os.environ["RANK"]))
"""
CELL = """
loader = torch.utils.data.DataLoader(
    data.Leaking(480), batch_size=4, num_workers=4, multiprocessing_context=method,
    worker_init_fn=gpumem.worker if method == "spawn" else None)
for batch in gpumem.steps(loader):
    pass
"""
SESSION = """
    import json, sys
    import data

    if __name__ == "__main__":
        from tests.support.shell import open_shell
        shell = open_shell(store=sys.argv[1], quiet=True)
        shell.run_line_magic("gpumem", "on")
        import gpumem
        import torch
        shell.user_ns.update(data=data, torch=torch, gpumem=gpumem, method=sys.argv[2])
        assert shell.run_cell(sys.argv[3], store_history=True).success
        report = gpumem.report()
        print("FOUND" + json.dumps({"text": report.text(100), **json.loads(report.to_json())}))
"""


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed here")


def play(folder: Path, cell: str, method: str = "") -> dict[str, Any]:
    """Run a cell in a session and return its report."""
    (folder / "data.py").write_text(textwrap.dedent(DATA))
    script = folder / "session.py"
    script.write_text(textwrap.dedent(SESSION))
    printed = output_of(script, folder / "store", method, cell, timeout=300)
    found: dict[str, Any] = json.loads(printed.rpartition("FOUND")[2])
    return found


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_worker_that_leaks_is_named(tmp_path: Path, method: str) -> None:
    found = play(tmp_path, CELL, method)
    names = {child["name"] for child in found["processes"]}
    assert names == {f"DataLoader worker {n}" for n in range(4)}
    (finding,) = found["process_findings"]
    assert finding["title"].startswith("DataLoader worker 3 (pid ")
    leaking = next(it for it in found["processes"] if it["name"] == "DataLoader worker 3")
    assert (leaking["growth"]["state"], leaking["growth"]["per"]) == ("leak", "step")
    # A batch of four in a process of four.
    assert leaking["growth"]["bytes_per_step"] == pytest.approx(6 << 20, rel=0.3)
    assert {child["ending"] for child in found["processes"]} == {"in_order"}


@needs("joblib")
def test_the_worker_of_joblib_that_leaks_is_named(tmp_path: Path) -> None:
    found = play(
        tmp_path,
        "import joblib\n"
        "_ = joblib.Parallel(n_jobs=2)(joblib.delayed(data.work)(number) for number in range(2))",
    )
    assert sorted(child["name"] for child in found["processes"]) == [
        "LokyProcess-1",
        "LokyProcess-2",
    ]
    (finding,) = found["process_findings"]
    assert finding["title"].startswith("LokyProcess-")
    assert found["processes"][0]["growth"]["bytes_per_step"] == pytest.approx(4 << 20, rel=0.3)


@needs("accelerate")
def test_the_rank_of_notebook_launcher_that_leaks_is_named(tmp_path: Path) -> None:
    found = play(
        tmp_path,
        "import accelerate\n"
        "accelerate.notebook_launcher(data.train, num_processes=2, use_port='0')",
    )
    assert sorted(child["name"] for child in found["processes"]) == ["rank 0", "rank 1"]
    (finding,) = found["process_findings"]
    assert finding["title"].startswith("rank 1 (pid ")


RAY = """
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
         runtime_env={"worker_process_setup_hook": gpumem.worker})

@ray.remote
class Model:
    def __init__(self):
        gpumem.worker()
        self.kept = []

    def step(self, mib):
        import time
        self.kept.append(b"x" * (mib << 20))
        time.sleep(0.02)
        gpumem.mark()

models = [Model.remote() for _ in range(2)]
for _ in range(60):
    ray.get([model.step.remote(mib) for model, mib in zip(models, (0, 4))])
ray.shutdown()
"""


@needs("ray")
def test_the_actor_of_ray_that_leaks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    found = play(tmp_path, RAY)
    actors = [child for child in found["processes"] if child["name"] == "Ray actor Model"]
    assert len(actors) == 2
    (finding,) = found["process_findings"]
    assert finding["title"].startswith("Ray actor Model (pid ")
    assert actors[0]["growth"]["bytes_per_step"] == pytest.approx(4 << 20, rel=0.3)
    # Ray itself ends its workers.
    assert "failed" not in found["text"]
