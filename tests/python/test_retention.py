"""What IPython keeps of what the user let go of is a finding of its own, until it is let go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim
from gpumem.details import Retention

from tests.support.shell import run

if TYPE_CHECKING:
    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20
FAILS = f"def fails():\n    batch = sim.tensor(200 * {MIB})\n    1 / 0"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Return a shell that records every cell on a device of 1 GiB."""
    sim.use(total_bytes=1 << 30)
    shell.user_ns.update(sim=sim, big=lambda: sim.tensor(100 * MIB))
    run(shell, "%gpumem on", FAILS)
    return shell


def retained() -> dict[str, tuple[int, int | None]]:
    """Return, of each place that stands, its bytes and since which cell it keeps them."""
    return {
        kept.place: (kept.n_bytes // MIB, kept.since_execution_count)
        for it in gpumem.report().findings
        if isinstance(kept := it.details, Retention) and it.withdrawn is None
    }


def finding() -> gpumem.types.Finding:
    [found] = [it for it in gpumem.report().findings if it.kind == "retention"]
    return found


def test_a_displayed_result_is_a_finding_until_it_is_released(shell: Shell) -> None:
    run(shell, "big()")
    assert retained() == {"output_history": (100, 3)}
    found = finding()
    assert (found.device, found.severity, found.holders[0].name) == ("sim:0", "warning", "Out[3]")
    assert found.fix is not None
    assert (found.fix.before, found.fix.after) == ("big()", "big();")
    assert isinstance(found.details, Retention)
    assert found.details.release == "%gpumem release outputs"
    run(shell, found.details.release, "pass")
    assert retained() == {}
    assert finding().withdrawn == "let_go"


def test_a_variable_that_is_deleted_leaves_what_was_displayed(shell: Shell) -> None:
    run(shell, "x = big()\nx")
    assert retained() == {}
    run(shell, "del x")
    assert retained() == {"output_history": (100, 3)}


def test_several_results_are_one_finding_since_the_oldest(shell: Shell) -> None:
    run(shell, "big()", "pass", "y = big(); y", "del y")
    assert retained() == {"output_history": (200, 3)}
    assert sorted(holder.name for holder in finding().holders) == ["Out[3]", "Out[5]"]


def test_the_last_exception_is_dated_to_the_failed_run(shell: Shell) -> None:
    run(shell, "fails()")
    assert retained() == {"traceback": (200, 3)}
    assert finding().holders[0].path.endswith("batch")
    assert "fix: %gpumem release traceback" in shell.lines[-1]
    # The next error takes its place.
    run(shell, "1 / 0")
    assert retained() == {}


def test_a_small_result_is_reported_only_in_the_report(shell: Shell) -> None:
    n_lines = len(shell.lines)
    run(shell, f"sim.tensor(8 * {MIB})")
    assert finding().severity == "info"
    assert len(shell.lines) == n_lines


def test_text_json_and_python_say_the_same(shell: Shell) -> None:
    run(shell, "big()")
    report = gpumem.report()
    assert "◆ IPython keeps 100 MiB that no name of yours reaches" in report.text()
    [entry] = [it for it in json.loads(report.to_json())["findings"] if it["kind"] == "retention"]
    assert entry["details"] == {
        "type": "retention",
        "place": "output_history",
        "n_bytes": 100 * MIB,
        "name": "Out[3]",
        "path": "Out[3]",
        "what": "Tensor",
        "release": "%gpumem release outputs",
        "since_run": 1,
        "since_execution_count": 3,
    }
    assert entry["title"] == finding().title


def test_results_displayed_again_and_again_are_the_cells_leak(shell: Shell) -> None:
    run(shell, *["sim.tensor(20 << 20)"] * 9)
    [found] = gpumem.report().findings
    assert (found.kind, found.state) == ("leak", "leak")
    [holder] = found.holders
    assert (holder.name, holder.what) == ("Out", "9 displayed results")
    assert (holder.n_bytes, holder.grown_bytes) == (180 * MIB, 180 * MIB)
