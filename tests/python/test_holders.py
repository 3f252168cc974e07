"""Who holds device memory: every place that keeps it, by its name."""

from __future__ import annotations

import gc
import itertools
import json
import sys
import threading
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem, sim

from tests.support import shell as shell_support
from tests.support.graph import Graph
from tests.support.programs import output_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.python

SETUP = "from gpumem import sim"
FAILING = "def train():\n    batch = sim.tensor(PLANTED)\n    1 / 0\n"


class Planted:
    """The size of a test's own tensor, unlike those that earlier shells still keep.

    IPython registers a shell to be cleaned up at exit, so none of them ever goes.
    """

    sizes = itertools.count(100_001)
    n_bytes = 0


@pytest.fixture
def notebook(shell: Shell) -> Shell:
    """Return a shell with an empty device."""
    sim.use()
    Planted.n_bytes = next(Planted.sizes)
    shell.run(SETUP)
    return shell


def run(shell: Shell, cell: str) -> None:
    """Run a cell in which `PLANTED` is the test's own size."""
    shell_support.run(shell, cell.replace("PLANTED", str(Planted.n_bytes)))


def places(n_bytes: int | None = None) -> dict[tuple[str, str], set[str]]:
    """Return the paths to one storage, by the kind and name of the root that they begin at."""
    return Graph().places(n_bytes or Planted.n_bytes)


def test_a_displayed_value_is_in_every_place(notebook: Shell) -> None:
    run(notebook, "sim.tensor(PLANTED)")
    out = next(iter(notebook.user_ns["Out"]))
    assert places() == {
        ("output_history", f"Out[{out}]"): {
            f"Out[{out}]",
            "_",
            f"_{out}",
            "get_ipython().user_ns_hidden['_']",
            f"get_ipython().user_ns_hidden['_{out}']",
            "get_ipython().displayhook._",
            "get_ipython().last_execution_result.result",
        }
    }


def test_hidden_copies_are_named_when_the_others_are_gone(notebook: Shell) -> None:
    run(notebook, "sim.tensor(PLANTED)")
    out = next(iter(notebook.user_ns["Out"]))
    run(notebook, f"del Out[{out}], _{out}")
    run(notebook, "1")
    run(notebook, "2")
    run(notebook, "3")
    run(notebook, "4")
    assert places() == {
        ("output_history", f"Out[{out}]"): {f"get_ipython().user_ns_hidden['_{out}']"}
    }


def test_an_older_result_is_named_by_its_underscores(notebook: Shell) -> None:
    run(notebook, "sim.tensor(PLANTED)")
    run(notebook, "1")
    (paths,) = places().values()
    assert {"__", "get_ipython().displayhook.__"} <= paths
    assert "get_ipython().last_execution_result.result" not in paths


def test_the_last_exception_is_named_in_every_place(notebook: Shell) -> None:
    run(notebook, f"{FAILING}train()")
    found = places()
    assert set(found) == {("traceback", "last exception")}
    expected = {
        "sys.last_value",
        "sys.last_traceback",
        "get_ipython().InteractiveTB.tb",
        "get_ipython().last_execution_result.error_in_exec",
    }
    if sys.version_info >= (3, 12):
        expected.add("sys.last_exc")
    begin = {path.split(".__traceback__", maxsplit=1)[0] for path in found.popitem()[1]}
    assert {path.split(".tb_next", maxsplit=1)[0] for path in begin} == expected


def test_one_place_of_an_exception_is_enough(notebook: Shell) -> None:
    run(notebook, f"{FAILING}train()")
    run(notebook, "1")
    sys.last_value = sys.last_traceback = None
    if sys.version_info >= (3, 12):
        sys.last_exc = None
    ((key, paths),) = places().items()
    assert key == ("traceback", "last exception")
    assert all(path.startswith("get_ipython().InteractiveTB.tb") for path in paths)


def test_globals_of_the_users_modules_are_named(
    notebook: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "mymodels"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "cache.py").write_text("CACHE = {}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    run(notebook, "import mymodels.cache\nmymodels.cache.CACHE['w'] = sim.tensor(PLANTED)")
    assert places() == {("module_global", "mymodels.cache.CACHE"): {"mymodels.cache.CACHE['w']"}}
    for name in ("mymodels", "mymodels.cache"):
        # For good: the tests after this one have names of their own.
        del sys.modules[name]


def test_memory_kept_by_a_library_has_a_system_holder(notebook: Shell) -> None:
    run(notebook, "import json\njson.kept = sim.tensor(PLANTED)")
    assert places() == {("system", "json"): {"json.kept"}}


def test_what_a_librarys_class_collects_is_found(
    notebook: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pyplot does with open figures."""
    monkeypatch.setattr(json.JSONEncoder, "figures", {}, raising=False)
    run(notebook, "import json\njson.JSONEncoder.figures[1] = [sim.tensor(PLANTED)]")
    assert places() == {("system", "json.encoder"): {"json.encoder.JSONEncoder.figures[1][0]"}}
    run(notebook, "del json.kept")


def test_the_frames_of_threads_are_named(notebook: Shell) -> None:
    go_on = threading.Event()
    notebook.user_ns["go_on"] = go_on
    run(
        notebook,
        "import threading\nready = threading.Event()\n"
        "def work():\n    batch = [sim.tensor(PLANTED)]\n    ready.set()\n    go_on.wait()\n"
        "thread = threading.Thread(target=work, name='loader'); thread.start(); ready.wait();",
    )
    try:
        found = places()
    finally:
        go_on.set()
        notebook.user_ns["thread"].join()
    assert found == {("thread_frame", "work() in loader"): {"work() in loader.<locals>.batch[0]"}}
    assert places() == {}


def test_cyclic_garbage_is_found_without_collecting(notebook: Shell) -> None:
    gc.collect()
    gc.disable()
    try:
        run(
            notebook,
            "class Node: pass\na = Node(); a.me = a; a.kept = [sim.tensor(PLANTED)]\n"
            "class Alive: pass\nb = Alive(); b.me = b; b.kept = sim.tensor(888)\ndel a",
        )
        assert places() == {("cyclic_garbage", "cyclic garbage"): {"<Node>.kept[0]"}}
        assert set(places(888)) == {("variable", "b")}
    finally:
        gc.enable()
    gc.collect()
    assert places() == {}


def test_nothing_is_named_where_nothing_is_held(notebook: Shell) -> None:
    run(notebook, "x = sim.tensor(PLANTED)\ny = x.item if False else None\ndel x")
    run(notebook, "sim.tensor(PLANTED);")
    assert places() == {}


MIB = 1 << 20


def test_holders_say_what_each_name_alone_keeps(notebook: Shell) -> None:
    run(
        notebook,
        "w = sim.tensor(1 << 20, requires_grad=True)\n"
        "losses = [(sim.tensor(8 << 20) @ w).sum() for _ in range(4)]\n"
        "shared = sim.tensor(2 << 20)\na, b = [shared], {'k': shared}\ndel shared",
    )
    found = gpumem.holders()
    names = {root.name: root for root in found.roots if root.device == "sim:0"}
    losses = names["losses"]
    assert (losses.kind, losses.n_bytes) == ("variable", 4 * (8 * MIB + 4))
    assert losses.path.startswith("losses[0].grad_fn")
    assert eval("losses[0].grad_fn", {}, {"losses": [Grad()]})  # noqa: S307 (reads as Python)
    assert sum(branch.n for branch in losses.children) == 4
    assert {"a", "b"}.isdisjoint(names)
    (both,) = [entry for entry in found.shared if entry.names[:2] == ("a", "b")]
    assert (both.n_bytes, both.device, both.and_others) == (2 * MIB, "sim:0", False)
    assert found.composition["sim:0"]["names"] >= 2 * MIB
    assert not found.is_cut
    assert "losses · list of 4 tensors, each with its graph" in str(found)


class Grad:
    grad_fn = "it"


@pytest.mark.parametrize("action", ["holders", "why"])
def test_the_magic_lists_one_name_or_all(notebook: Shell, action: str) -> None:
    run(notebook, "cache = {'batch': sim.tensor(9 << 20)}")
    notebook.run(f"%gpumem {action}")
    assert "9 MiB  cache · dict of 1 tensor" in notebook.lines[-1]
    assert "cache['batch']" in notebook.lines[-1]
    notebook.run(f"%gpumem {action} cache --device sim:0 --depth 2")
    assert notebook.lines[-1].splitlines()[1:] == [
        "     9 MiB  cache · dict of 1 tensor",
        "            cache['batch']",
    ]
    notebook.run("nobody = None")
    notebook.run(f"%gpumem {action} nobody")
    assert notebook.lines[-1] == "nobody holds no device memory"
    notebook.run(f"%gpumem {action} --depth 2 cache")
    assert "9 MiB  cache · dict of 1 tensor" in notebook.lines[-1]
    said = notebook.run(f"%gpumem {action} cache --device sim:7").stderr
    assert "unknown device 'sim:7': there is sim:0, host" in said
    said = notebook.run(f"%gpumem {action} two names").stderr
    assert "takes one name, not 'two names'" in said


def test_why_names_the_cell_since_which_a_name_holds_memory(notebook: Shell) -> None:
    notebook.run("%gpumem on")
    run(notebook, "first = sim.tensor(20 << 20)")
    run(notebook, "cache = {'batch': sim.tensor(90 << 20)}")
    run(notebook, "first = None")
    notebook.run("%gpumem why cache")
    [line] = [line for line in notebook.lines[-1].splitlines() if "dict of 1 tensor" in line]
    [found] = [it for it in gpumem.holders() if it.name == "cache"]
    assert line.endswith(f" · since In [{found.since_execution_count}]"), line
    number = found.since_execution_count
    assert number is not None
    assert notebook.user_ns["In"][number].startswith("cache = "), number


def test_holders_work_without_a_notebook() -> None:
    code = (
        "import gpumem\nfrom gpumem import sim\nkept = [sim.tensor(5 << 20)]\n"
        "def inside():\n    batch = sim.tensor(3 << 20)\n    return gpumem.holders().roots\n"
        "for root in inside(): print(root.kind, root.name, root.n_bytes >> 20, root.path)\n"
    )
    assert output_of("-c", code).splitlines() == [
        "variable kept 5 kept[0]",
        "thread_frame batch in inside() 3 inside().<locals>.batch",
    ]


def held_after(run_idx: int) -> list[str]:
    """Return who held memory after a run, in words, line by line."""
    return gpumem.recording()._held_text(run_idx, 100).splitlines()


def test_a_run_that_grew_keeps_who_holds_it(notebook: Shell) -> None:
    notebook.run("%%gpumem\nlosses = [sim.tensor(8 << 20)]")
    # It is known what was there before the first run.
    assert "     8 MiB  losses · list of 1 tensor · +8 MiB since the last look" in held_after(0)
    notebook.run("%%gpumem\nlosses.append(sim.tensor(4 << 20))")
    grown = "    12 MiB  losses · list of 2 tensors · +4 MiB since the last look"
    assert grown in held_after(1)
    # A recording that was kept says so, too.
    again = gpumem.types.Recording.from_bytes(gpumem.recording().to_bytes())
    assert grown in again._held_text(1, 100).splitlines()


def test_nobody_looks_where_nothing_grew_or_nobody_wants_it(notebook: Shell) -> None:
    notebook.run("kept = [sim.tensor(8 << 20)]")
    notebook.run("%%gpumem\nx = 1")
    notebook.run("%%gpumem\nkept.clear()")
    notebook.run("%%gpumem --no-holders\nkept = [sim.tensor(8 << 20)]")
    notebook.run("%config GpuMem.holders = False")
    notebook.run("%%gpumem\nkept.append(sim.tensor(8 << 20))")
    assert [held_after(run_idx) for run_idx in range(4)] == [[], [], [], []]
    notebook.run("%%gpumem --holders\nkept.append(sim.tensor(8 << 20))")
    assert any("kept" in line for line in held_after(4))
    notebook.run("%config GpuMem.holders = True")


@pytest.mark.parametrize("look", ["gpumem.holders()", "get_ipython().run_line_magic('gpumem', '')"])
@pytest.mark.parametrize("ask", ["gpumem.holders()", "%gpumem why", "kept.append(sim.tensor(9))"])
def test_an_adapter_that_looks_itself_is_logged_once(
    shell: Shell, caplog: pytest.LogCaptureFixture, ask: str, look: str
) -> None:
    shell.run("%gpumem on")
    shell.run("import gpumem\nfrom gpumem import sim\nsim.use()\nn_asked, kept = [], []")
    shell.run(
        "class Own: pass\n"
        f"def tell(own):\n    n_asked.append(1)\n    {look}\n    return 'npu:0', 7\n"
        "gpumem.register_adapter(Own, tell, after_runs=True)\nown = Own()"
    )
    outcome = shell.run(f"kept.append(sim.tensor(1 << 26))\n{ask}")
    assert outcome.errors == ["None", "None"]
    assert 1 <= len(shell.user_ns["n_asked"]) <= 4
    assert _gpumem._stopped() is None
    said = [record.getMessage() for record in caplog.records]
    assert all("gpumem is looking for holders already" in line for line in said)
    assert len(said) == len(set(said)) <= 1
    shell.run("gpumem.register_adapter(Own, lambda own: ('npu:0', 7))")
    assert "npu:0" in shell.run("print(gpumem.holders().text())").stdout


def test_a_notebook_shows_a_table_in_which_no_name_is_markup(notebook: Shell) -> None:
    notebook.run("kept = {'<b>': sim.tensor(64 << 20)}")
    shown = gpumem.holders()._repr_html_()
    assert "<th" in shown
    assert ">kept</td>" in shown
    assert "<b>" not in shown
