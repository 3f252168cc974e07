"""Memory that runs out: recognised, kept as it was at that moment, and explained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import sim

if TYPE_CHECKING:
    from tests.python.conftest import Shell

pytestmark = pytest.mark.python

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
WORDS = (
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 GiB of "
    "which 1.00 MiB is free."
)
FILL = f"kept = sim.tensor(600 * {MIB})"
TOO_MUCH = f"sim.tensor(500 * {MIB})"


@pytest.fixture
def shell(new_shell: Any) -> Shell:
    """Return a shell with a simulated device of 1 GiB."""
    made: Shell = new_shell()
    sim.use(total_bytes=1 << 30)
    made.run("import gpumem, threading\nfrom gpumem import sim")
    return made


def rows() -> list[dict[str, Any]]:
    return [row for row in gpumem.report().runs if row["device"] == "sim:0"]


def of_the_shell(holders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what the threads and modules of other tests hold."""
    return [it for it in holders if it["kind"] in {"variable", "output_history", "traceback"}]


def out_of_memory() -> list[gpumem.types.Finding]:
    return [found for found in gpumem.report().findings if found.kind == "out_of_memory"]


@pytest.mark.parametrize(
    "body",
    [
        TOO_MUCH,
        f"try:\n    {TOO_MUCH}\nexcept RuntimeError as error:\n    raise ValueError from error",
        f"try:\n    {TOO_MUCH}\nexcept RuntimeError:\n    1 / 0",
        f"try:\n    {TOO_MUCH}\nexcept RuntimeError:\n    raise ValueError from None",
        f"raise RuntimeError('Caught OutOfMemoryError in DataLoader worker process 0.\\n{WORDS}')",
        "raise RuntimeError('RESOURCE_EXHAUSTED: Out of memory allocating 64 bytes.')",
        "class OutOfMemoryError(Exception): pass\nraise OutOfMemoryError",
        f"def inner():\n    {TOO_MUCH}\ninner()",
        f"try:\n    {TOO_MUCH}\nexcept RuntimeError:\n    raise",
        f"try:\n    {TOO_MUCH}\nexcept RuntimeError as error:\n    raise error from None",
        f"with gpumem.record('forward'):\n    {TOO_MUCH}",
    ],
)
def test_every_way_out_of_memory_is_one(shell: Shell, body: str) -> None:
    shell.run(f"%%gpumem --label it\n{FILL}\n{body}")
    assert rows()[0]["status"] == "out_of_memory"
    assert rows()[0]["oom"]["survived"] is False
    [found] = out_of_memory()
    assert (found.severity, found.cell.label if found.cell else None) == ("critical", "it")


def test_the_device_that_ran_out_is_named(shell: Shell) -> None:
    sim.use(total_bytes=1 << 30, n_devices=3)
    shell.run(f"kept = sim.tensor(600 * {MIB}, device=2)")
    shell.run(f"%%gpumem --label it\nsim.tensor(500 * {MIB}, device=2)")
    [found] = out_of_memory()
    assert found.device == "sim:2"
    last = {row["device"]: row for row in gpumem.report().runs if row["label"] == "it"}
    assert last["sim:2"]["oom"]["free_bytes"] == (1024 - 600) * MIB
    assert last["sim:0"]["after_bytes"] == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="ExceptionGroup is new in Python 3.11")
@pytest.mark.parametrize("depth", [1, 3])
def test_a_group_is_looked_into(shell: Shell, depth: int) -> None:
    group = f"RuntimeError({WORDS!r})"
    for _ in range(depth):
        group = f"ExceptionGroup('several', [ValueError(), {group}])"
    shell.run(f"%%gpumem\nraise {group}")
    [row] = rows()
    assert (row["status"], row["oom"]["wanted_bytes"]) == ("out_of_memory", 2 * MIB)


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('out of memory')",
        "raise MemoryError('std::bad_alloc')",
        "raise RuntimeError('RESOURCE_EXHAUSTED: quota exceeded')",
        "raise RuntimeError('CUDA error: device-side assert triggered')",
    ],
)
def test_other_errors_are_none(shell: Shell, body: str) -> None:
    shell.run(f"%%gpumem\n{body}")
    [row] = rows()
    assert (row["status"], row["oom"]) == ("error", None)
    assert out_of_memory() == []


@pytest.mark.parametrize("error", ["MemoryError", "RuntimeError"])
def test_a_gpu_that_is_not_read_is_not_laid_to_the_host(new_shell: Any, error: str) -> None:
    shell: Shell = new_shell()
    shell.run(f"%%gpumem --source host\nraise {error}({WORDS!r})")
    [found] = out_of_memory()
    assert found.device is None
    words = "ran out of memory on a device that is not read, 1 MiB short"
    assert words in found.title
    of_card = gpumem.report().text().split("ran out of memory", 1)[1].split("\n\n", 1)[0]
    assert "host" not in of_card


def test_figures_are_those_of_the_moment_to_the_byte(shell: Shell) -> None:
    shell.run(f"%%gpumem\n{FILL}\n{TOO_MUCH}")
    [row] = rows()
    oom = row["oom"]
    oom["holders"] = of_the_shell(oom["holders"])
    assert {key: oom[key] for key in oom if oom[key] is not None and key != "at_nanos"} == {
        "framework": "sim",
        "survived": False,
        "wanted_bytes": 500 * MIB,
        "free_bytes": 424 * MIB,
        "total_bytes": 1024 * MIB,
        "allocated_bytes": 600 * MIB,
        "reserved_bytes": 600 * MIB,
        "unallocated_bytes": 0,
        "largest_free_bytes": 0,
        "this_process_bytes": 600 * MIB,
        "others": [],
        "holders": [{"name": "kept", "kind": "variable", "used_bytes": 600 * MIB}],
        "message": oom["message"],
    }
    assert oom["message"].startswith("Simulated CUDA out of memory. Tried to allocate 500.00 MiB")
    assert row["started_nanos"] < oom["at_nanos"] <= row["ended_nanos"]


def test_each_name_is_listed_with_its_bytes(shell: Shell) -> None:
    shell.run(f"weights = sim.tensor(256 * {MIB})\nalias = [weights]")
    shell.run(f"sim.tensor(228 * {MIB})")
    shell.run(f"%%gpumem\ndef step(given):\n    batch = {FILL[7:]}\nstep(weights)")
    [row] = rows()
    holders = of_the_shell(row["oom"]["holders"])
    held = {it["name"]: (it["kind"], it["used_bytes"] // MIB) for it in holders}
    number = max(shell.user_ns["Out"])
    name = next(name for name in held if name in {"weights", "alias"})
    assert held == {name: ("variable", 256), f"Out[{number}]": ("output_history", 228)}
    [found] = out_of_memory()
    assert f"held by `{name}` 256 MiB, `Out[{number}]` 228 MiB" in found.detail
    assert "displayed results hold 228 MiB: `%gpumem release outputs`" in found.detail


def test_names_are_kept_as_the_source_is(shell: Shell) -> None:
    shell.run_line_magic("config", "GpuMem.source_text = 'none'")
    shell.run(f"%%gpumem\nsecret = {FILL[7:]}\n{TOO_MUCH}")
    assert b"secret" not in gpumem.recording().to_bytes()
    [found] = out_of_memory()
    assert "held by a variable 600 MiB" in found.detail
    shell.run_line_magic("config", "GpuMem.source_text = 'full'")


CAUGHT = f"try:\n        {TOO_MUCH}\n    except RuntimeError:\n        pass"
IN_A_THREAD = f"""def work():
    {CAUGHT}
thread = threading.Thread(target=work)
thread.start()
thread.join()"""


@pytest.mark.parametrize("body", [f"if True:\n    {CAUGHT}", IN_A_THREAD])
def test_a_survived_error_is_reported_too(shell: Shell, body: str) -> None:
    shell.run(f"%%gpumem\n{FILL}\n{body}")
    [row] = rows()
    assert (row["status"], row["oom"]["survived"]) == ("ok", True)
    assert (row["oom"]["wanted_bytes"], row["oom"]["free_bytes"]) == (500 * MIB, 424 * MIB)
    [found] = out_of_memory()
    assert found.severity == "warning"
    assert "ran out of memory and went on, 76 MiB short" in found.title
    shell.run("%%gpumem\nafterwards = 1")
    assert rows()[1]["oom"] is None


IN_A_FUNCTION = f"""def step():
    batch = sim.tensor(600 * {MIB})
    {CAUGHT}
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("step()", "batch in step()"),
        (
            "thread = threading.Thread(target=step); thread.start(); thread.join()",
            "batch in step()",
        ),
        ("list(map(lambda _: step(), [0]))", "batch in step()"),
        ("kept = [sim.tensor(300 << 20)]\nsmall()", "kept"),
    ],
)
def test_who_held_memory_is_known_though_the_cell_caught_it(
    shell: Shell, call: str, name: str
) -> None:
    small = IN_A_FUNCTION.replace("step", "small").replace("600", "250").replace("500", "600")
    shell.run(f"{IN_A_FUNCTION}{small}")
    shell.run(f"%%gpumem\n{call}")
    [row] = rows()
    assert row["oom"]["survived"] is True
    holders = {it["name"]: (it["kind"], it["used_bytes"] // MIB) for it in row["oom"]["holders"]}
    if name == "kept":
        assert holders == {"kept": ("variable", 300), "batch in small()": ("thread_frame", 250)}
    else:
        assert holders == {name: ("thread_frame", 600)}
    [found] = out_of_memory()
    assert f"held by `{name}` " in found.detail


def test_memory_of_a_failed_function_is_listed_by_variable(shell: Shell) -> None:
    shell.run(
        f"def encode(n, given):\n    outs = []\n    for _ in range(n):\n"
        f"        outs.append(sim.tensor(40 * {MIB}))\n    return outs"
    )
    shell.run(f"given = sim.tensor(100 * {MIB})")
    shell.run("%%gpumem\nencode(40, given)")
    holders = {
        it["name"]: it["used_bytes"] // MIB for it in of_the_shell(rows()[0]["oom"]["holders"])
    }
    assert holders == {"given": 100, "outs in encode()": 920}
    [found] = out_of_memory()
    assert "`outs in encode()` collected 920 MiB in this run" in found.detail


def test_nobody_is_looked_for_where_the_user_does_not_want_it(shell: Shell) -> None:
    shell.run(f"{IN_A_FUNCTION}")
    shell.run("%%gpumem --no-holders\nstep()")
    shell.run(f"%%gpumem --no-holders\n{FILL}\n{TOO_MUCH}")
    assert [row["oom"]["holders"] for row in rows()] == [[], []]


def test_a_gradient_without_room_is_reported(shell: Shell) -> None:
    shell.run(f"%%gpumem\nw = sim.tensor(600 * {MIB}, requires_grad=True)\nw.sum().backward()")
    [row] = rows()
    assert row["oom"]["wanted_bytes"] == 600 * MIB
    assert {"name": "w", "kind": "variable", "used_bytes": 600 * MIB} in row["oom"]["holders"]


def test_an_error_that_ends_a_thread_is_the_threads_own(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr("threading.excepthook", lambda args: ended.append(args.exc_type.__name__))
    shell.run(f"%%gpumem\n{FILL}\n{IN_A_THREAD.replace('pass', 'raise')}")
    assert ended == ["OutOfMemoryError"]
    assert rows()[0]["oom"]["survived"] is True


def test_how_often_it_happened_is_counted(shell: Shell) -> None:
    shell.run(f"%%gpumem\n{FILL}\nfor _ in range(7):\n    {CAUGHT}")
    [found] = out_of_memory()
    assert "7 times in this run" in found.detail


def test_the_line_after_the_cell_says_what_to_do(shell: Shell) -> None:
    shell.run(f"%%gpumem\ndef step():\n    batch = {FILL[7:]}\n    return {TOO_MUCH}\nstep()")
    first, status, *found = shell.lines[-1].splitlines()
    assert first.startswith("+600 MiB kept · ")
    assert status.endswith("out of memory")
    assert found == [
        "▲ step() ran out of memory, 76 MiB short",
        "  the traceback keeps 600 MiB: %gpumem release traceback",
        "  %gpumem_report shows it in full",
    ]
    assert "▲ step() ran out of memory, 76 MiB short" in gpumem.report().text()


def test_a_later_run_with_room_withdraws_it(shell: Shell) -> None:
    cell = f"%%gpumem\n{TOO_MUCH}"
    shell.run(FILL)
    shell.run(cell)
    shell.run("del kept")
    shell.run(cell)
    [found] = out_of_memory()
    assert (found.withdrawn, found.severity) == ("had_enough", "info")


def test_the_block_in_which_it_happened_is_named(shell: Shell) -> None:
    shell.run(f"%%gpumem\n{FILL}\nwith gpumem.record('forward'):\n    {TOO_MUCH}")
    [found] = out_of_memory()
    assert found.path == ("forward",)


@pytest.mark.parametrize(("kept", "has_words"), [("full", True), ("hash", False), ("none", False)])
def test_its_words_are_kept_as_the_source_is(shell: Shell, kept: str, *, has_words: bool) -> None:
    shell.run_line_magic("config", f"GpuMem.source_text = {kept!r}")
    shell.run(f"%%gpumem\nraise RuntimeError({WORDS + ' secret'!r})")
    written = gpumem.recording().to_bytes()
    assert (b"secret" in written) == has_words
    assert rows()[0]["oom"]["wanted_bytes"] == 2 * MIB
    shell.run_line_magic("config", "GpuMem.source_text = 'full'")


def test_looking_runs_none_of_the_users_code(shell: Shell) -> None:
    shell.run(
        "calls = []\n"
        "def called(self, *_):\n"
        "    calls.append(self)\n"
        "    return ()\n"
        "class Loud(RuntimeError):\n"
        "    args = __cause__ = __context__ = exceptions = property(called)\n"
        "    __eq__ = __hash__ = __str__ = __getattr__ = called\n"
    )
    raising = f"calls.clear()\nraise Loud({WORDS!r})"
    shell.run(raising)
    of_ipython = len(shell.user_ns["calls"])
    shell.run(f"%%gpumem\n{raising}")
    assert len(shell.user_ns["calls"]) == of_ipython
    assert rows()[0]["status"] == "out_of_memory"
