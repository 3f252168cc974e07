"""``%gpumem expect``: growth that is meant is a note, here and when it is opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim

from tests.support.shell import run, said

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

GROWS = "losses.append(sim.tensor(64 << 20))"


def test_growth_that_is_meant_is_no_leak(shell: Shell, tmp_path: Path) -> None:
    sim.use(8 << 30)
    shell.user_ns.update(sim=sim, losses=[])
    run(shell, "%gpumem on", *[GROWS] * 12)
    (leak,) = gpumem.report().findings
    assert leak.fingerprint is not None
    assert f"id {leak.fingerprint}" in " ".join(gpumem.report().text().split())
    assert "no longer reported" in " ".join(said(shell, "%gpumem expect losses"))
    assert "expected: losses" in " ".join(said(shell, "%gpumem expect"))
    assert "▲" not in " ".join(said(shell, GROWS))
    gpumem.recording().save(tmp_path / "kept.gpumem")
    for recording in (gpumem.recording(), gpumem.load(tmp_path / "kept.gpumem")):
        report = gpumem.report(recording)
        (meant,) = report.findings
        assert (meant.withdrawn, meant.severity) == ("expected", "info")
        assert meant.fingerprint == leak.fingerprint
        assert "○ expected: losses keeps 64 MiB a run" in report.text()
    run(shell, "%gpumem expect losses --off")
    (again,) = gpumem.report().findings
    assert again.withdrawn is None
