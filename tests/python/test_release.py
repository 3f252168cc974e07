"""What ``%gpumem release`` gives back, and what it leaves alone."""

from __future__ import annotations

import gc
import io
import re
import sys
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gpumem
import IPython
import pytest
from gpumem import _gpumem, sim

from tests.support.shell import run, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

MIB = 1 << 20
FAILS = f"""
def step():
    batch = plant(64 * {MIB})
    sim.tensor(1 << 40)
"""


@pytest.fixture
def shell(new_shell: Any) -> Iterator[Shell]:
    """Return a shell whose ``plant`` makes tensors that are followed weakly."""
    made: Shell = new_shell()
    sim.use(total_bytes=1 << 30)
    planted: list[weakref.ref[sim.Tensor]] = []

    def plant(n_bytes: int = 8 * MIB) -> sim.Tensor:
        tensor = sim.tensor(n_bytes)
        planted.append(weakref.ref(tensor))
        return tensor

    made.user_ns.update(gpumem=gpumem, sim=sim, plant=plant, planted=planted)
    run(made, FAILS)
    # Nothing here may go by itself: what is released is released by name.
    gc.collect()
    gc.disable()
    yield made
    gc.enable()
    gc.collect()


def alive(shell: Shell) -> int:
    return sum(ref() is not None for ref in shell.user_ns["planted"])


ODD = """
class Odd(RuntimeError):
    __traceback__ = __cause__ = __context__ = exceptions = property(lambda self: 1 / 0)

def stumble():
    mine = plant()
    raise Odd

stumble()
"""

ERRORS = {
    "a class in the way": ODD,
    "plain": "step()",
    "cause": "try:\n    step()\nexcept RuntimeError as error:\n    raise ValueError from error",
    "context": "try:\n    step()\nexcept RuntimeError:\n    held = 1 / 0",
    "hidden context": "try:\n    step()\nexcept RuntimeError:\n    raise ValueError from None",
    "named": "try:\n    step()\nexcept RuntimeError as error:\n    kept = error\nraise kept",
    "deep": "def deep(n):\n    mine = plant()\n    return deep(n - 1) if n else step()\ndeep(20)",
    "generator": "def steps():\n    mine = plant()\n    yield step()\nlist(steps())",
}
if IPython.version_info < (8,):
    # IPython 7 itself raises what such a class raises.
    del ERRORS["a class in the way"]
GROUPED = {
    "group": "try:\n    step()\nexcept RuntimeError as it:\n    raise ExceptionGroup('', [it])",
    "group in group": "try:\n    step()\nexcept RuntimeError as error:\n"
    "    raise ExceptionGroup('', [ValueError(), ExceptionGroup('', [error])])",
}
if sys.version_info >= (3, 11):
    ERRORS |= GROUPED


@pytest.mark.parametrize("recorded", ["", "%%gpumem\n"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_traceback_lets_go_of_its_frames(shell: Shell, error: str, recorded: str) -> None:
    run(shell, recorded + ERRORS[error])
    assert alive(shell) > 0
    [line, *_] = said(shell, "%gpumem release traceback")
    assert alive(shell) == 0
    assert line.startswith("traceback  forgot ")
    assert " back on sim:0" in line
    assert sim.memory_stats()["allocated_bytes"] == 0
    for name in ("last_exc", "last_value", "last_traceback"):
        assert not hasattr(sys, name)
    # IPython goes on as if there had been no error.
    assert "No traceback available" in shell.run("%tb").stderr + shell.run("%tb").stdout
    assert shell.run("1 / 0").last_type == "ZeroDivisionError"


@pytest.mark.parametrize("error", ["plain", "cause"])
def test_after_debug_too(shell: Shell, monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    run(shell, ERRORS[error])
    monkeypatch.setattr("sys.stdin", io.StringIO("up\ndown\np batch\nq\n"))
    run(shell, "%debug")
    monkeypatch.undo()
    assert alive(shell) == 1
    run(shell, "%gpumem release traceback")
    assert alive(shell) == 0


def test_an_error_in_between_is_let_go_with_the_rest(shell: Shell) -> None:
    run(shell, "step()", "x = = 1", "x = = 1")
    run(shell, "%gpumem release traceback")
    assert alive(shell) == 0


@pytest.mark.parametrize("n_outputs", [1, 2, 5])
def test_outputs_are_let_go_in_every_place(shell: Shell, n_outputs: int) -> None:
    run(shell, *["plant()"] * n_outputs)
    assert alive(shell) == n_outputs
    [line, *_] = said(shell, "%gpumem release outputs")
    assert alive(shell) == 0
    assert line.startswith(f"outputs    forgot {n_outputs} output")
    assert line.endswith(f" · {8 * n_outputs} MiB back on sim:0")


def test_underscores_work_on_afterwards(shell: Shell) -> None:
    run(shell, "plant()", "%gpumem release outputs", "20 + 1", "_ + 1")
    assert shell.user_ns["_"] == 22
    assert shell.user_ns["__"] == 21
    number = max(shell.user_ns["Out"])
    assert shell.user_ns[f"_{number}"] == shell.user_ns["Out"][number] == 22


def test_outputs_that_were_dropped_by_hand_are_found(shell: Shell) -> None:
    run(shell, "x = plant()\nx")
    number = max(shell.user_ns["Out"])
    run(shell, f"del x, Out[{number}], _{number}, _", "1;")
    assert alive(shell) == 1
    run(shell, "%gpumem release outputs")
    assert alive(shell) == 0


def test_the_users_own_underscores_stay(shell: Shell) -> None:
    run(shell, "plant()", "_ = plant()\n_1 = 'mine'", "%gpumem release outputs")
    assert alive(shell) == 1
    assert shell.user_ns["_1"] == "mine"


def test_a_cycle_is_collected(shell: Shell) -> None:
    run(shell, "ring = [plant()]\nring.append(ring)\ndel ring")
    assert alive(shell) == 1
    [line, *_] = said(shell, "%gpumem release cycles")
    assert alive(shell) == 0
    assert line == "cycles     collected what only refers to itself · 8 MiB back on sim:0"


def test_a_framework_that_cannot_be_read_has_no_cache(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unloaded(ModuleType):
        def __getattr__(self, name: str) -> object:
            message = f"{self.__name__}.{name} cannot be loaded"
            raise ImportError(message)

    monkeypatch.setitem(sys.modules, "torch", Unloaded("torch"))
    [line, *_] = said(shell, "%gpumem release cache")
    assert line.startswith("cache      emptied the cache of sim")


def test_the_cache_goes_back_to_the_device(shell: Shell) -> None:
    run(shell, "x = plant(128 << 20)\ndel x")
    hint = said(shell, "%gpumem release traceback")[-1]
    assert hint == "now in the allocator's cache: 128 MiB of sim:0 · `%gpumem release cache`"
    [line] = said(shell, "%gpumem release cache")
    assert line == "cache      emptied the cache of sim · 128 MiB back on sim:0"
    assert sim.memory_stats()["reserved_bytes"] == 0


def test_a_name_goes_with_its_other_names_and_outputs(shell: Shell) -> None:
    run(shell, "x = plant()\nx", "y = x\nkept = [x]\ndel kept")
    [line, *_] = said(shell, "%gpumem release x")
    assert alive(shell) == 0
    said_of_it = r"x {10}deleted x \(also Out\[(\d+)\], _, _\1, y\) · 8 MiB back on sim:0"
    assert re.fullmatch(said_of_it, line)
    assert not {"x", "y"} & set(shell.user_ns)
    run(shell, "6", "_ + 1")
    assert shell.user_ns["_"] == 7


def test_all_takes_every_step(shell: Shell) -> None:
    run(shell, "plant()", "ring = [plant()]\nring.append(ring)\ndel ring", "step()")
    lines = said(shell, "%gpumem release all")
    assert [line.split()[0] for line in lines] == ["traceback", "outputs", "cycles", "cache"]
    assert alive(shell) == 0
    stats = sim.memory_stats()
    assert (stats["allocated_bytes"], stats["reserved_bytes"]) == (0, 0)


@pytest.mark.parametrize(
    "line",
    ["%gpumem release", "%gpumem release all x --dry-run", "%gpumem release --dry-run all x"],
)
def test_a_dry_run_says_and_does_nothing(shell: Shell, line: str) -> None:
    run(shell, "x = plant()", "plant()", "step()")
    n_alive = alive(shell)
    lines = said(shell, line)
    assert lines[0] == "traceback  would forget OutOfMemoryError (4 frames)"
    assert lines[1].startswith("outputs    would forget 1 output (Out[")
    assert lines[2:4] == [
        "cycles     would collect what only refers to itself",
        "cache      would empty the cache of sim",
    ]
    assert lines[4].startswith(("x          would delete x", "nothing is released yet: "))
    assert alive(shell) == n_alive
    assert hasattr(sys, "last_value")


def test_with_nothing_to_release_it_says_so(shell: Shell) -> None:
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        vars(sys).pop(name, None)
    assert said(shell, "%gpumem release traceback") == ["traceback  no error is kept"]
    assert said(shell, "%gpumem release outputs") == ["outputs    no output is kept"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%gpumem release nosuch", "there is no variable 'nosuch': release traceback, outputs, "),
        ("%gpumem release get_ipython", "'get_ipython' is IPython's own"),
        ("%gpumem release traceback nosuch", "there is no variable 'nosuch'"),
    ],
)
def test_a_wrong_name_releases_nothing(shell: Shell, line: str, words: str) -> None:
    run(shell, "step()")
    outcome = shell.run(line)
    assert outcome.stderr.startswith("UsageError: %gpumem: ")
    assert words in outcome.stderr
    assert alive(shell) == 1


def test_from_python_it_returns_what_it_did(shell: Shell) -> None:
    run(shell, "step()", "released = gpumem.release('traceback', 'cache')")
    released = shell.user_ns["released"]
    assert [step.name for step in released.steps] == ["traceback", "cache"]
    assert released.steps[0].freed == {"sim:0": 64 * MIB}
    assert released.freed == {"sim:0": 2 * 64 * MIB}
    assert repr(released) == "<Released: 2 steps taken, 128 MiB on sim:0>"
    with pytest.raises(ValueError, match="there is no variable 'nosuch'"):
        gpumem.release("nosuch")


def test_it_is_no_run_and_changes_no_recording(shell: Shell) -> None:
    run(shell, "%gpumem on", "step()")
    n_runs = len(gpumem.report().runs)
    run(shell, "%gpumem release all")
    assert len(gpumem.report().runs) == n_runs
    run(shell, "%gpumem off")


def test_the_report_knows_what_was_freed_outside_of_a_run(shell: Shell) -> None:
    grow = "kept.append((sim.tensor(64 << 20) * w).sum())"
    run(shell, "w, kept = sim.tensor(8 << 20, requires_grad=True), []", "%gpumem on")
    run(shell, *[grow] * 9)
    [leak] = gpumem.report().findings
    assert leak.kind == "leak"
    run(shell, "%gpumem release kept")
    report = gpumem.report()
    assert [it.kind for it in report.findings] == ["settled"]
    assert "8 MiB of it allocated" in report.text()
    assert "given back since" in report.text()
    assert gpumem.report().text() == report.text()


def test_what_was_freed_outside_of_a_run_is_kept_by_nobody(shell: Shell) -> None:
    run(shell, "%gpumem on", "shown = sim.tensor(64 << 20)\nshown", "shown = None")
    assert "IPython keeps 64 MiB" in gpumem.report().text()
    run(shell, "%gpumem release outputs")
    [kept] = gpumem.report().findings
    assert (kept.kind, kept.withdrawn) == ("retention", "let_go")


def test_comparisons_of_the_users_are_not_called(shell: Shell) -> None:
    run(
        shell,
        "class Array:\n"
        "    def __eq__(self, other): raise ValueError('the truth value is ambiguous')\n"
        "    __hash__ = None\n"
        "_ = Array()\na = Array()",
        "Array()",
        "%gpumem release outputs",
        "%gpumem release a",
    )
    assert shell.lines[-1].startswith("a          deleted a")


def test_without_a_shell_it_forgets_the_last_error() -> None:
    assert _gpumem.bytes_text(420 * MIB) == "420 MiB"
    sys.last_value = ValueError()
    try:
        # A simulated device of another test may have something to say as well.
        released = str(gpumem.release("traceback"))
        assert released.splitlines()[0] == "traceback  forgot ValueError (0 frames)"
        assert not hasattr(sys, "last_value")
    finally:
        vars(sys).pop("last_value", None)
