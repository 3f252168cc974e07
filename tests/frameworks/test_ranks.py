"""A job of torchrun: three ranks with gloo, of which one leaks and runs out of memory first."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.programs import run_gpumem, run_python

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
    import gpumem
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    model = torch.nn.Linear(512, 512)
    losses = []
    for step in gpumem.steps(range(40)):
        batch = torch.randn(4096, 512)
        loss = model(batch).relu().mean()
        loss.backward(retain_graph=True)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad = None
        {body}
"""


def joined(tmp_path: Path, body: str, code: int) -> dict[str, Any]:
    """Return the report on the job, and what it prints as ``text``."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT).format(body=textwrap.indent(body, " " * 4).strip()))
    torchrun = ["-m", "torch.distributed.run", "--standalone"]
    run = ["--nproc-per-node", "3", "-m", "gpumem", "run", "--store", str(tmp_path / "job")]
    ran = run_python(*torchrun, *run, script, timeout=300, OMP_NUM_THREADS="1")
    assert ran.returncode == code, ran.stderr
    report = ["report", tmp_path / "job"]
    found: dict[str, Any] = json.loads(run_gpumem(*report, "--json").stdout)
    return found | {"text": run_gpumem(*report, "--text").stdout}


@pytest.mark.skipif(sys.platform != "linux", reason="gloo finds its ranks by the host's name")
def test_the_rank_that_leaks_and_runs_out_is_named_first(tmp_path: Path) -> None:
    body = """
if rank == 2:
    losses.append(loss)
    if step == 30:
        torch.empty(1 << 50)
"""
    found = joined(tmp_path, textwrap.indent(body, "    "), 1)
    first, growth = found["findings"][:2]
    assert (first["kind"], first["ranks"]) == ("out_of_memory", [2]), found["text"]
    assert "in step 31: 4 PiB were wanted" in first["title"]
    assert growth["ranks"] == [2]
    assert growth["title"].startswith("rank 2 keeps"), growth
    # On a busy machine the search for holders may have no time before torchrun ends the ranks.
    who, _, rest = growth["title"].partition(", held by ")
    assert rest in {"", "losses; the others keep nothing"}
    assert rest or who.endswith("; the others keep nothing")
    # A loss keeps its batch's activations: 4096 x 512 floats, and more.
    assert 8 << 20 <= found["ranks"][2]["growth"]["bytes_per_step"] <= 32 << 20
    assert {rank["ending"] for rank in found["ranks"]} <= {"out_of_memory", "failed", "lost"}


@pytest.mark.skipif(sys.platform != "linux", reason="gloo finds its ranks by the host's name")
def test_a_healthy_job_has_no_finding(tmp_path: Path) -> None:
    found = joined(tmp_path, "    pass", 0)
    assert found["findings"] == [], found["text"]
    assert [rank["n_steps"] for rank in found["ranks"]] == [40] * 3
    assert [rank["ending"] for rank in found["ranks"]] == ["in_order"] * 3
    assert found["missing"] == []
    assert found["skew_nanos"] < 2e9
