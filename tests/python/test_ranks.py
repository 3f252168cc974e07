"""Ranks of one job: each records itself into one folder, and their report is joined."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import gpumem
import pytest

from tests.support.programs import run_gpumem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Shell

    Job = Callable[..., list[subprocess.Popen[str]]]

SCRIPT = """
    import os, time
    import gpumem
    from gpumem import sim

    sim.use(total_bytes=2 << 30)
    rank = int(os.environ["RANK"])
    model = sim.tensor(100 << 20)
    losses = []
    for step in gpumem.steps(range(30)):
        if {condition}:
            losses.append(sim.tensor(40 << 20))
        time.sleep(0.02)
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Start the script as ranks of a job that keeps its recordings in ``job``."""

    def started(n: int, condition: str, after: str = "", **environment: str) -> list[Any]:
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT).format(condition=condition) + after)
        folder = tmp_path / "job"
        command = [sys.executable, "-m", "gpumem", "run", "--store", str(folder), str(script)]
        around = {name: it for name, it in os.environ.items() if name != "GPUMEM_PROCESSES"}
        around |= {"WORLD_SIZE": str(n), "SLURM_JOB_ID": "4711", **environment}
        return [
            subprocess.Popen(
                command, env=around | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True
            )
            for rank in range(n)
        ]

    return started


def report(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_gpumem("report", *arguments)


def test_the_rank_that_leaks_is_named(job: Job, tmp_path: Path) -> None:
    for rank in job(3, "rank == 1"):
        said = rank.communicate(timeout=120)[1]
        assert (rank.returncode, said) == (0, "")
    shown = report(tmp_path / "job")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0] == "3 ranks · job 4711"
    assert lines[2] == "▲ rank 1 keeps 40 MiB a step, held by losses; the others keep nothing"
    assert max(map(len, lines[:3] + lines[5:])) <= 100
    # What it says to do next works.
    name, _, command = lines[4].partition(": jupyter gpumem report ")
    assert name == "The report of rank 1, with holders and fixes"
    own = report(command)
    assert (own.returncode, own.stderr) == (0, "")
    assert "losses" in own.stdout
    found = json.loads(report(tmp_path / "job", "--json").stdout)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1, 2]
    assert [rank["n_steps"] for rank in found["ranks"]] == [30, 30, 30]
    assert [rank["ending"] for rank in found["ranks"]] == ["in_order"] * 3
    assert found["ranks"][1]["growth"]["bytes_per_step"] == 40 << 20
    assert (found["missing"], found["findings"][0]["ranks"]) == ([], [1])
    files = sorted((tmp_path / "job").iterdir())
    assert json.loads(report(*files, "--json").stdout) == found
    loaded = gpumem.load(tmp_path / "job")
    assert loaded.text(100) == shown.stdout.rstrip("\n")


def test_the_page_of_a_job_is_written(job: Job, tmp_path: Path) -> None:
    for rank in job(2, "rank == 1"):
        rank.communicate(timeout=120)
    page = tmp_path / "job.html"
    wrote = report(tmp_path / "job", "--html", page)
    assert (wrote.returncode, wrote.stderr) == (0, "")
    text = page.read_text()
    assert "<title>job · ranks of a job</title>" in text
    assert "▲ rank 1 keeps 40 MiB a step, held by losses; the other keeps nothing" in text
    refused = report(tmp_path / "job", "--processes")
    assert refused.returncode == 2
    assert "a job of several ranks has no --processes" in refused.stderr


def test_the_rank_that_runs_out_first_is_named(job: Job, tmp_path: Path) -> None:
    after = (
        "    if step == 20 and rank == 2: sim.tensor(8 << 30)\n"
        # The others wait for it, as in a collective operation.
        "    if step == 20: time.sleep(60)\n"
    )
    ranks = job(4, "rank == 2", after)
    assert ranks[2].wait(timeout=120) == 1
    # As a launcher does.
    for rank in ranks:
        rank.terminate()
    for rank in ranks:
        rank.communicate(timeout=120)
    lines = report(tmp_path / "job").stdout.splitlines()
    assert lines[2].startswith("▲ rank 2 ran out of memory first, in step 21: 8 GiB were wanted")
    assert "▲ rank 2 keeps 40 MiB a step, held by losses; the others keep nothing" in lines
    rows = [line.split() for line in lines if "out of memory at" in line]
    assert [row[0] for row in rows] == ["2"]


def test_what_a_killed_rank_had_is_there(job: Job, tmp_path: Path) -> None:
    after = "    if step == 20 and rank == 1: time.sleep(1.5); os.kill(os.getpid(), 9)\n"
    ranks = job(2, "False", after)
    for rank in ranks:
        rank.communicate(timeout=120)
    assert ranks[1].returncode == -signal.SIGKILL
    lines = report(tmp_path / "job").stdout.splitlines()
    assert lines[2].startswith("▲ rank 1 stopped without a word, in step 2")
    found = json.loads(report(tmp_path / "job", "--json").stdout)
    assert found["ranks"][1]["n_steps"] in {20, 21}


def test_only_the_last_job_counts(job: Job, tmp_path: Path) -> None:
    for rank in job(2, "True", SLURM_JOB_ID="1"):
        rank.communicate(timeout=120)
    time.sleep(0.1)
    for rank in job(2, "False", SLURM_JOB_ID="2"):
        rank.communicate(timeout=120)
    text = report(tmp_path / "job").stdout
    assert text.startswith("2 ranks · job 2\n\n○ No rank ran out of memory, grows")
    assert text.endswith("\n2 more recordings here are not of this job.\n")


def test_a_folder_of_saved_recordings_is_a_job(shell: Shell, tmp_path: Path) -> None:
    shell.run("%gpumem on")
    shell.run("x = 1")
    gpumem.recording().save(tmp_path / "a.gpumem")
    gpumem.recording().save(tmp_path / "b.gpumem")
    assert report(tmp_path).stdout.startswith("2 ranks\n")
    assert report(tmp_path / "a.gpumem", tmp_path / "b.gpumem").stdout.startswith("2 ranks\n")
    shell.run(f"%gpumem_report {tmp_path} --text")
    assert shell.lines[-1].startswith("2 ranks\n")


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    refused = report("last", "last")
    assert refused.returncode == 2
    assert "cannot read last: several names are files of one job's ranks" in refused.stderr
    (tmp_path / "a.gpumem").write_bytes(b"no recording")
    refused = report(tmp_path)
    assert refused.returncode == 2
    assert "a.gpumem" in refused.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no trace in this folder" in report(empty).stderr


def test_a_script_alone_keeps_its_session_where_set(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("x = 1\n")
    ran = run_gpumem("run", "--store", "job", "one.py", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert report(tmp_path / "job").stdout.startswith("1 rank\n")
    notebook = run_gpumem("run", "--store", "job", "one.ipynb", cwd=tmp_path)
    assert notebook.returncode == 2
    assert "--store is for scripts" in notebook.stderr
