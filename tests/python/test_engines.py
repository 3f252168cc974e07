"""Engines of ipyparallel record themselves, and are reported as the ranks of one job."""

from __future__ import annotations

import importlib.util
import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import output_of, run_gpumem

if TYPE_CHECKING:
    from pathlib import Path

# Once imported, ipyparallel changes how messages of every kernel are read: not in this process.
SCRIPT = """
    import sys
    import ipyparallel

    cluster = ipyparallel.Cluster(n=3, log_level=40, profile_dir=sys.argv[2])
    try:
        engines = cluster.start_and_connect_sync()[:]
        engines.block = True
        # As `%%px` sends a cell.
        for cell in (
            "%load_ext gpumem",
            f"%config GpuMem.store = {sys.argv[1]!r}",
            "%gpumem on",
            "from gpumem import sim; sim.use(total_bytes=2 << 30); kept = []",
            "engine = get_ipython().kernel.engine_id",
            *["if engine == 1: kept.append(sim.tensor(40 << 20))"] * 12,
        ):
            engines.execute(cell, silent=False)
    finally:
        cluster.stop_cluster_sync()
"""


@pytest.mark.skipif(importlib.util.find_spec("ipyparallel") is None, reason="no ipyparallel here")
def test_the_engine_that_leaks_is_named(tmp_path: Path) -> None:
    job = tmp_path / "job"
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(SCRIPT))
    output_of(script, job, tmp_path / "profile")
    shown = run_gpumem("report", job).stdout
    assert shown.startswith("3 ranks\n")
    found = json.loads(run_gpumem("report", job, "--json").stdout)
    assert [finding["ranks"] for finding in found["findings"]] == [[1]], shown
    assert found["findings"][0]["title"].endswith("held by kept; the others keep nothing")
    ranks = found["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    assert [rank["device"] for rank in ranks] == ["sim:0"] * 3
    assert len({rank["n_steps"] for rank in ranks}) == 1
    assert all(rank["steps_are_runs"] for rank in ranks)
    assert ranks[1]["growth"]["bytes_per_step"] == 40 << 20
