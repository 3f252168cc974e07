"""The workers of a Ray cluster of two nodes, each of which keeps what its own workers record."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import output_of, run_gpumem

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("ray", reason="there is no Ray here")

import gpumem.ray

# Steps of an actor on each node; the second one leaks.
SCRIPT = """
    import json, sys, time
    import gpumem.ray, ray
    from gpumem import sim
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    class Model:
        def __init__(self):
            sim.use(1 << 30)
            self.kept = []

        @gpumem.record
        def step(self, mib):
            loss = sim.tensor(16 << 20)
            if mib:
                self.kept.append(sim.tensor(mib << 20))

    head = {"num_cpus": 1, "include_dashboard": False}
    local = Cluster(initialize_head=True, head_node_args=head)
    second = local.add_node(num_cpus=1)
    recorded = gpumem.ray.init(address=local.address, log_to_driver=False)
    try:
        gpumem.ray.init()
    except RuntimeError as error:
        print(error)
    nodes = [node["NodeID"] for node in ray.nodes()]
    models = [
        ray.remote(Model).options(num_cpus=0, scheduling_strategy=On(node, soft=False)).remote()
        for node in nodes
    ]
    for _ in range(12):
        ray.get([model.step.remote(mib) for model, mib in zip(models, (0, 8))])
    def ranks():
        return json.loads(recorded.report().to_json())["ranks"]

    def is_whole(found):
        named = any(rank["growth"] and rank["growth"]["holder"] for rank in found)
        return named and [rank["n_steps"] for rank in found] == [12, 12]

    until = time.monotonic() + 30
    while not is_whole(ranks()) and time.monotonic() < until:
        time.sleep(0.2)
    ray.kill(models[1])
    while all(rank["ending"] == "running" for rank in ranks()) and time.monotonic() < until:
        time.sleep(0.2)
    # A node that is gone has handed in before.
    local.remove_node(second)
    print(json.dumps({"nodes": nodes, "ranks": ranks(), "text": recorded.report().text(200)}))
    recorded.save("job")
    ray.shutdown()
    local.shutdown()
    assert len(recorded.recordings()) == 2
"""


def test_workers_of_two_nodes_are_one_job(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    off = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    refused, said = output_of(path, cwd=tmp_path, **off).splitlines()[-2:]
    assert refused == "Ray is initialized already: call gpumem.ray.init in place of ray.init"
    found = json.loads(said)
    print(found["text"])
    # Named by its node, wherever that is.
    kept, other = sorted(found["ranks"], key=lambda it: it["growth"] is None)
    names = [kept["name"].split("-")[0], other["name"].split("-")[0]]
    assert sorted(names) == sorted(node[:4] for node in found["nodes"])
    assert kept["growth"]["bytes_per_step"] == 8 << 20
    assert (kept["ending"], kept["n_steps"], other["n_steps"]) == ("in_order", 12, 12)
    assert f"worker {kept['name']} may keep 8 MiB a run" in found["text"]
    # The saved files are the same job.
    shown = run_gpumem("report", tmp_path / "job").stdout
    assert f"worker {kept['name']} may keep 8 MiB a run" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("environment", "error", "words"),
    [
        ("env.yaml", TypeError, "runtime_env is a dictionary, not str"),
        (
            {"worker_process_setup_hook": print},
            ValueError,
            "runtime_env has a worker_process_setup_hook already: gpumem needs it for its own",
        ),
    ],
)
def test_an_environment_that_cannot_be_extended_is_refused(
    environment: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        gpumem.ray.init(runtime_env=environment)
