"""The thresholds of the verdicts: set from Python and by `%config`, kept in the recording."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

from .frames import of_kind

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Shell

MIB = 1 << 20
SHORT = gpumem.Rules(min_runs=5)


@pytest.fixture
def leaking(shell: Shell) -> Shell:
    """Return a shell in which six runs of a cell kept 4 MiB each, under no name that collects."""
    sim.use(total_bytes=1 << 30)
    shell.user_ns.update(sim=sim, kept={})
    shell.run("%config GpuMem.holders = False\n%gpumem use sim")
    for _ in range(6):
        shell.run("%%gpumem -q\nkept[len(kept)] = sim.tensor(4 << 20)")
    return shell


def kinds(report: gpumem.types.Report) -> list[str]:
    """Return what was found on the simulated device."""
    return [finding.kind for finding in report.findings if finding.device == "sim:0"]


def test_rules_are_the_defaults_but_for_what_is_named() -> None:
    assert asdict(gpumem.Rules()) == gpumem._gpumem._default_rules()
    assert gpumem.Rules().min_runs == 9
    assert gpumem.Rules().min_growth == MIB
    assert asdict(SHORT) == {**asdict(gpumem.Rules()), "min_runs": 5}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"min_runs": 2}, "min_runs is 2: it must be a whole number of at least 3"),
        ({"min_runs": "9"}, "min_runs is '9': it must be a number"),
        ({"min_growth": -1}, "min_growth is -1: it must be a number of bytes, at least 0"),
        (
            {"fragmentation_ratio": 30},
            "fragmentation_ratio is 30: it must be a share from 0 to 1",
        ),
        (
            {"trend_z": float("nan")},
            "trend_z is NaN: it must be a finite number of at least 0",
        ),
    ],
)
def test_a_value_that_a_threshold_cannot_be_is_named(
    shell: Shell, caplog: pytest.LogCaptureFixture, rules: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        gpumem.Rules(**rules)
    shell.user_ns["nan"] = float("nan")
    shell.run(f"%config GpuMem.rules = {rules!r}")
    assert f"GpuMem.rules: {message}" in caplog.text
    assert gpumem.report().rules == gpumem.Rules()


def test_a_name_of_no_threshold_is_refused(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    shell.run("%config GpuMem.rules = {'runs': 5}")
    assert 'GpuMem.rules: no threshold is named "runs": there are min_runs, ' in caplog.text


@pytest.mark.usefixtures("leaking")
def test_a_report_is_judged_by_the_rules_that_it_is_given(tmp_path: Path) -> None:
    assert kinds(gpumem.report()) == ["growing"]
    report = gpumem.report(rules=SHORT)
    assert report.rules == SHORT
    assert json.loads(report.to_json())["rules"] == asdict(SHORT)
    assert kinds(report) == ["leak"]
    # What is saved of it is judged alike.
    path = tmp_path / "recording.gpumem"
    report.recording.save(path)
    assert gpumem.report(gpumem.load(path)).rules == SHORT
    assert kinds(gpumem.report(gpumem.load(path))) == ["leak"]
    assert kinds(gpumem.report(gpumem.load(path), rules=gpumem.Rules())) == ["growing"]
    bare: Any = {"min_runs": 5}
    with pytest.raises(TypeError, match=r"^gpumem\.Rules are needed, not \{'min_runs': 5\}$"):
        gpumem.report(rules=bare)


def test_a_session_is_judged_by_what_config_says(leaking: Shell) -> None:
    leaking.run("%config GpuMem.rules = {'min_runs': 5}")
    assert kinds(gpumem.report()) == ["leak"]
    header = of_kind(gpumem.recording(), "header")[-1]
    assert header["rules"]["min_runs"] == 5
    # So is the line after a cell.
    leaking.run("%%gpumem\nkept[len(kept)] = sim.tensor(4 << 20)")
    assert "+4 MiB every run" in leaking.lines[-1]
    leaking.run("%gpumem reset")
    assert gpumem.report().rules == SHORT
    leaking.run("%config GpuMem.rules = {}")
    assert gpumem.report().rules == gpumem.Rules()


def test_the_rules_say_when_it_is_worth_asking_where_memory_is(shell: Shell) -> None:
    def n_maps(ratio: float) -> int:
        sim.use(total_bytes=1 << 30)
        shell.user_ns.update(sim=sim)
        shell.run(f"%config GpuMem.rules = {{'fragmentation_ratio': {ratio}}}\n%gpumem reset")
        shell.run("%gpumem use sim")
        shell.run("%%gpumem -q\nheld = [sim.tensor(6 << 20) for _ in range(90)]")
        shell.run("%%gpumem -q\nheld = held[::3]")
        shell.run("%%gpumem -q\ndel held")
        return len(of_kind(gpumem.recording(), "segments"))

    assert n_maps(0.9) == 0
    assert n_maps(0.3) == 1


def test_levels_and_baselines_are_judged_by_rules(leaking: Shell) -> None:
    levels = [MIB * run for run in range(6)]
    assert gpumem.classify_growth(levels).state == "not_enough_data"
    assert gpumem.classify_growth(levels, rules=SHORT).state == "suspected"
    high_floor = gpumem.Rules(min_runs=5, min_growth=64 * MIB)
    assert gpumem.classify_growth(levels, rules=high_floor).state == "stable"
    assert gpumem.classify_growth(levels, rules=high_floor, min_growth=MIB).state == "suspected"
    leaking.run("%gpumem off")
    recording = gpumem.recording()
    (change,) = gpumem.compare(recording, recording).changes
    assert change.change == "same"
    high_floor = gpumem.Rules(min_growth=64 * MIB)
    assert gpumem.compare(recording, recording, rules=high_floor).changes == []
