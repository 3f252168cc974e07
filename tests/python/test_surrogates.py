"""Text with half of a surrogate pair, which UTF-8 cannot hold: file names and frontends have it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem
from gpumem.classic import GPUMemoryProfiler
from IPython.core.error import UsageError

from tests.support.reports import recording_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

LONE = "a\udcffb"
SHOWN = "a\ufffd\ufffd\ufffdb"


@pytest.fixture
def recorded(shell: Shell, caplog: pytest.LogCaptureFixture) -> Any:
    """Return a shell that records every cell, in which nothing of ours may fail."""
    shell.run("%gpumem on")
    shell.user_ns.update(gpumem=gpumem, LONE=LONE)
    shell.run("from gpumem import sim\nsim.use()\nkept = []")
    yield shell
    assert _gpumem._stopped() is None
    assert caplog.records == []


def labels() -> set[str]:
    return {row["label"] for row in gpumem.report().runs}


@pytest.mark.parametrize(
    "cell",
    [
        "gpumem.mark(LONE)",
        "for step in gpumem.steps(range(3), LONE): kept.append(sim.tensor(1 << 20))",
        "with gpumem.record(LONE): kept.append(sim.tensor(1 << 20))",
        "gpumem.record(LONE)(lambda: sim.tensor(1 << 20))()",
        "globals()[LONE] = sim.tensor(1 << 26)",
        "kept = type('Kept', (), {})()\nsetattr(kept, LONE, sim.tensor(1 << 26))",
        (
            "import threading\nthread = threading.Thread(target=print, name=LONE)\nthread.start()\n"
            "thread.join()"
        ),
        (
            "def function(): return sim.tensor(1 << 26)\n"
            "function.__code__ = function.__code__.replace(co_name=LONE, co_filename=LONE)\n"
            "kept.append(function())"
        ),
        "exec(compile('kept.append(sim.tensor(1 << 26))', LONE, 'exec'))",
        (
            "import threading\nbegun, over = threading.Event(), threading.Event()\n"
            "def work():\n    tensor = sim.tensor(1 << 26)\n    begun.set()\n    over.wait()\n"
            "names = {'co_name': LONE, 'co_filename': LONE, 'co_varnames': (LONE,)}\n"
            "work.__code__ = work.__code__.replace(**names)\n"
            "thread = threading.Thread(target=work)\nthread.start()\nbegun.wait()\n"
            "print(gpumem.holders())\nover.set()\nthread.join()"
        ),
        "print(gpumem.holders().text(LONE, LONE))",
    ],
)
@pytest.mark.parametrize("magic", ["%%gpumem\n", "%%gpumem --trace\n"])
def test_a_cell_is_recorded_whatever_its_texts(recorded: Shell, magic: str, cell: str) -> None:
    outcome = recorded.run(magic + cell)
    assert outcome.errors == ["None", "None"]
    assert gpumem.report().runs[-1]["status"] == "ok"


def test_labels_are_kept_with_signs_for_what_cannot_be_written(recorded: Shell) -> None:
    recorded.run(f"%%gpumem -l {LONE}\nx = 1")
    recorded.run("with gpumem.record(LONE + 'c'): x = 1")
    assert {SHOWN, f"{SHOWN}c"} <= labels()


@pytest.mark.parametrize("cell_id", [LONE, 3])
def test_a_cells_id_may_be_anything(recorded: Shell, cell_id: object) -> None:
    recorded.run_cell("x = 1", cell_id=cell_id)  # type: ignore[no-untyped-call]
    assert gpumem.report().runs[-1]["status"] == "ok"


def test_an_error_may_say_anything(recorded: Shell) -> None:
    recorded.run(
        "class OutOfMemoryError(RuntimeError): pass\n"
        "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB ' + LONE)"
    )
    assert gpumem.report().runs[-1]["status"] == "out_of_memory"


def test_a_baseline_may_have_any_name(recorded: Shell, tmp_path: Path) -> None:
    recorded.run_line_magic("gpumem", f"baseline {LONE}")
    recorded.run("x = 1")
    page = tmp_path / "page.html"
    recorded.run_line_magic("gpumem_report", f"--compare {LONE} --text --html {page}")
    assert SHOWN in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("magic", "line"),
    [
        ("gpumem", f"use {LONE}"),
        ("gpumem", f"release {LONE}"),
        ("gpumem", f"on --interval {LONE}"),
        ("gpumem", f"why --device {LONE}"),
        ("gpumem_report", f"--compare {LONE}"),
        ("gpumem_report", "--html a\ud800b.html"),
        ("gpumem_report", "--html a\0b.html"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(recorded: Shell, magic: str, line: str) -> None:
    with pytest.raises(UsageError) as refused:
        recorded.run_line_magic(magic, line)
    words = str(refused.value)
    assert "\n" not in words
    assert any(name in words for name in (SHOWN, *(repr(word)[1:-1] for word in line.split()[-1:])))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file's name is Unicode")
def test_a_file_may_have_any_name(
    recorded: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded.run(f"%%gpumem --trace {LONE}.pickle\nkept.append(sim.tensor(1 << 20))")
    recorded.run_line_magic("gpumem_report", f"--html {LONE}.html")
    gpumem.recording().save(f"{LONE}.gpumem")
    assert recording_in(Path(f"{LONE}.gpumem")).to_bytes() == gpumem.recording().to_bytes()
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert names == [f"{LONE}.gpumem", f"{LONE}.html", f"{LONE}.pickle"]


def test_a_lone_surrogate_beside_the_recording_raises_nothing(recorded: Shell) -> None:
    profiler = GPUMemoryProfiler()
    ask: list[Callable[[], object]] = [
        lambda: _gpumem.sources_text([LONE]),
        lambda: _gpumem.classic_snapshot(LONE, LONE, cpu=False),
        lambda: profiler.profile_function(recorded.user_ns["kept"].copy),
        lambda: gpumem.who().text(),
    ]
    for question in ask:
        question()
