"""What gpumem assumes of IPython and its kernel. One test is one assumption."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import inspect
import linecache
import sys
import types
from typing import TYPE_CHECKING, Any

import IPython
import pytest
from IPython.core import completer, getipython
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class
from traitlets.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ipython

is_7 = IPython.version_info < (8,)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    """Return a shell with nothing of gpumem, which leaves nothing."""
    main = sys.modules["__main__"]
    config = Config()
    config.HistoryManager.enabled = False
    made: Any = InteractiveShell(
        config=config,
        ipython_dir=str(tmp_path),
        display_pub_class=CapturingDisplayPublisher,
    )
    yield made
    sys.modules["__main__"] = main
    atexit.unregister(made.atexit_operations)
    vars(made.user_module).clear()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        with contextlib.suppress(AttributeError):
            delattr(sys, name)


def run(shell: Any, cell: str, **options: Any) -> Any:
    """Run a cell as a frontend does, which numbers it."""
    return shell.run_cell(cell, **{"store_history": True, **options})


# Variables and results


def test_variables_are_dicts_and_hidden_ones_are_in_both(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` tells the user's variables from IPython's own."""
    assert (type(shell.user_ns), type(shell.user_ns_hidden)) == (dict, dict)
    run(shell, "mine = object()")
    assert "mine" not in shell.user_ns_hidden
    for name in ("In", "get_ipython", "exit"):
        assert shell.user_ns[name] is shell.user_ns_hidden[name]


def test_a_result_is_kept_by_number_in_three_places(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `gpumem/_retention.py` know `Out[1]`, `_1`, its copy."""
    made = run(shell, "object()").result
    outputs = shell.history_manager.output_hist
    assert type(outputs) is dict
    assert outputs is shell.user_ns["Out"] is shell.user_ns["_oh"]
    assert outputs[1] is shell.user_ns["_1"] is shell.user_ns_hidden["_1"] is made


def test_the_last_three_results_are_kept_by_underscores(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `gpumem/_retention.py` find them in hook, variables."""
    made = [run(shell, "object()").result for _ in range(3)]
    for name, expected in zip(("___", "__", "_"), made, strict=True):
        assert vars(shell.displayhook)[name] is shell.user_ns[name] is expected
    assert isinstance(shell.displayhook, DisplayHook)


def test_the_last_execution_keeps_result_and_errors(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `ipython/extension/cells.rs` read these attributes."""
    result = run(shell, "object()")
    assert shell.last_execution_result is result
    assert (result.success, result.error_in_exec, result.error_before_exec) == (True, None, None)
    assert result.execution_count == 1
    failed = run(shell, "1 / 0")
    assert type(failed.error_in_exec) is ZeroDivisionError
    assert not failed.success
    assert type(run(shell, "1 +").error_before_exec) is SyntaxError


def test_the_formatter_keeps_the_last_traceback(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `gpumem/_retention.py` know it holds all frames."""
    error = run(shell, "1 / 0").error_in_exec
    frames = []
    traceback = shell.InteractiveTB.tb
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    assert frames
    assert frames[-1] is error.__traceback__.tb_next.tb_frame


def test_formatters_have_a_debugger_and_a_syntax_error(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `gpumem/_retention.py` look into them."""
    assert shell.InteractiveTB.pdb is None
    error = run(shell, "1 +").error_before_exec
    assert shell.SyntaxTB.last_syntax_error is error


def test_the_debugger_is_kept_after_debug(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`objects/walk/roots/ipython.rs` finds the frames that `%debug` looked at."""
    run(shell, "1 / 0")
    monkeypatch.setattr(shell.InteractiveTB.debugger_cls, "interaction", lambda *_: None)
    run(shell, "%debug")
    assert shell.InteractiveTB.pdb is not None


def test_an_error_is_kept_in_sys(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` and `gpumem/_retention.py` look there, too."""
    error = run(shell, "1 / 0").error_in_exec
    assert sys.last_value is error
    assert sys.last_traceback is not None


def test_scripts_are_kept_as_modules_by_file(shell: Any, tmp_path: Path) -> None:
    """`objects/walk/roots/ipython.rs` names what `%run` left."""
    script = tmp_path / "script.py"
    script.write_text("left = 3")
    run(shell, f"%run {script}")
    assert type(shell._main_mod_cache) is dict
    module = shell._main_mod_cache[str(script)]
    assert isinstance(module, types.ModuleType)
    assert vars(module)["left"] == 3


def test_all_namespaces_are_in_one_list(shell: Any) -> None:
    """`gpumem/_retention.py` removes a variable from each, as `%xdel` does."""
    own = [shell.user_ns, shell.user_ns_hidden]
    assert [it for it in own if not any(it is other for other in shell.all_ns_refs)] == []


def test_these_parts_belong_to_a_shell(shell: Any) -> None:
    """`objects/walk/roots/ipython.rs` does not enter them."""
    for name in ("displayhook", "history_manager", "user_module", "events"):
        assert getattr(shell, name) is not None
    assert not hasattr(shell, "kernel")


def test_the_running_shell_is_found_without_importing() -> None:
    """`base/shells.rs` asks this module, which answers with nothing if no shell runs."""
    InteractiveShell.clear_instance()
    assert getipython.get_ipython() is None


# Events


def heard_by(shell: Any) -> list[tuple[str, Any]]:
    """Note the events around cells from now on."""
    heard: list[tuple[str, Any]] = []
    shell.user_ns["note"] = lambda: heard.append(("cell", None))
    shell.events.register("pre_run_cell", lambda info: heard.append(("begins", info)))
    shell.events.register("post_run_cell", lambda result: heard.append(("ended", result)))
    return heard


def test_events_come_right_before_and_after_a_cell(shell: Any) -> None:
    """`ipython/extension/cells.rs` begins and ends runs with them."""
    heard = heard_by(shell)
    run(shell, "note()")
    run(shell, "1 / 0")
    assert [event for event, _ in heard] == ["begins", "cell", "ended", "begins", "ended"]


def test_the_end_of_a_cell_names_its_beginning(shell: Any) -> None:
    """`ipython/extension/cells.rs` finds a running cell by the identity of its `info`."""
    heard = heard_by(shell)
    run(shell, "note()")
    (_, info), _, (_, result) = heard
    assert result.info is info
    assert shell.last_execution_result is result


def test_what_begins_says_its_text_and_if_it_is_numbered(shell: Any) -> None:
    """`ipython/extension/cells.rs` reads these attributes."""
    heard = heard_by(shell)
    run(shell, "note()", store_history=False, cell_id="first")
    (_, info), *_ = heard
    assert (info.raw_cell, info.store_history, info.cell_id) == ("note()", False, "first")


def test_a_blank_cell_ends_without_having_begun(shell: Any) -> None:
    """`ipython/extension/cells.rs` passes over such an end."""
    heard = heard_by(shell)
    run(shell, "  \n")
    assert "begins" not in [event for event, _ in heard]


def test_a_cell_in_a_cell_has_events_of_its_own(shell: Any) -> None:
    """`ipython/extension/cells.rs` keeps one run for both."""
    heard = heard_by(shell)
    shell.user_ns["shell"] = shell
    run(shell, "shell.run_cell('note()')")
    assert [event for event, _ in heard] == ["begins", "begins", "cell", "ended", "ended"]


def test_the_next_number_is_how_many_were_typed(shell: Any) -> None:
    """`ipython/extension/cells.rs` numbers a cell that begins by `input_hist_parsed`."""
    numbers = []
    history = shell.history_manager
    shell.events.register("pre_run_cell", lambda _: numbers.append(len(history.input_hist_parsed)))
    results = [run(shell, cell) for cell in ("1", "1 / 0", "3")]
    assert numbers == [result.execution_count for result in results] == [1, 2, 3]
    assert shell.execution_count == 4


def test_typed_cells_are_kept_by_number(shell: Any) -> None:
    """`gpumem/_cell_names.py` reads `input_hist_raw`, from which a last newline is taken."""
    run(shell, "%time 3\n")
    assert shell.history_manager.input_hist_raw == ["", "%time 3"]


def test_an_event_that_was_taken_out_is_an_error(shell: Any) -> None:
    """`ipython/extension/mod.rs` takes this error for a callback that the user took out."""

    def callback(_: object) -> None: ...

    with pytest.raises(ValueError, match=r"not registered|not in list"):
        shell.events.unregister("pre_run_cell", callback)


def test_a_cell_inside_raises_its_error(shell: Any) -> None:
    """`gpumem/magics.py` runs a body by `run_cell(…).raise_error()`."""
    with pytest.raises(ZeroDivisionError):
        run(shell, "1 / 0").raise_error()


# Ctrl-C, transformers, magics


def test_a_transformer_that_is_interrupted_ends_the_cell(shell: Any) -> None:
    """`base/interrupt.rs` raises a Ctrl-C so, as the last step before the cell's code."""

    class Raises:
        def visit(self, _node: object) -> object:
            shell.ast_transformers.remove(self)
            raise KeyboardInterrupt

    assert type(shell.ast_transformers) is list
    shell.ast_transformers.append(Raises())
    heard = heard_by(shell)
    with contextlib.suppress(KeyboardInterrupt):
        run(shell, "note()")
    assert "cell" not in [event for event, _ in heard]


def test_a_traceback_is_shown_of_a_triple(shell: Any) -> None:
    """`base/interrupt.rs` shows a Ctrl-C that came after the cell's code."""
    shown = []
    shell._showtraceback = lambda kind, *_: shown.append(kind)
    error = KeyboardInterrupt()
    shell.showtraceback((KeyboardInterrupt, error, error.__traceback__))
    assert shown == [KeyboardInterrupt]


def test_cleanup_transformers_see_a_cell_first(shell: Any) -> None:
    """`gpumem/magics.py` blanks its line there, before other magics are read."""

    def blank(lines: list[str]) -> list[str]:
        return ["\n", *lines[1:]] if lines[0].startswith("%%mine") else lines

    shell.input_transformers_cleanup.append(blank)
    assert run(shell, "%%mine\n3").result == 3


def test_transformers_with_side_effects_are_left_out_of_checks(shell: Any) -> None:
    """`gpumem/magics.py` marks its own: a terminal must not take `%%gpumem` for complete."""

    def blank(lines: list[str]) -> list[str]:
        return ["\n", *lines[1:]]

    blank.has_side_effects = True  # type: ignore[attr-defined]
    shell.input_transformers_cleanup.append(blank)
    assert shell.check_complete("%%mine\n")[0] == "incomplete"


def test_magics_are_registered_by_kind_and_class(shell: Any) -> None:
    """`gpumem/_install.py` takes its own out of these."""

    @magics_class
    class Mine(Magics):
        @line_magic
        def mine(self, _line: str) -> None: ...

    made: Any = Mine(shell)
    shell.register_magics(made)
    assert shell.magics_manager.magics["line"]["mine"] == made.mine
    assert shell.magics_manager.registry["Mine"] is made
    assert made.magics == {"line": {"mine": made.mine}, "cell": {}}
    assert type(shell.configurables) is list


@pytest.mark.filterwarnings("ignore:`Completer.complete` is pending")
def test_completers_are_added_as_matchers(shell: Any) -> None:
    """`gpumem/_completion.py` adds one, in two ways."""
    seen = []

    def of_word(word: str) -> list[str]:
        seen.append((shell.Completer.text_until_cursor, word))
        return ["mine"]

    def of_context(context: Any) -> Any:
        seen.append((context.text_until_cursor, context.token))
        completions = [completer.SimpleCompletion(text="mine")]
        return {"completions": completions, "suppress": True, "ordered": True}

    of_context.matcher_api_version = 2  # type: ignore[attr-defined]
    of_context.matcher_priority = 1  # type: ignore[attr-defined]
    assert hasattr(completer, "context_matcher") == (not is_7)
    shell.Completer.custom_matchers.append(of_word if is_7 else of_context)
    _, found = shell.complete("mi", "%nothing mi", 11)
    assert seen == [("%nothing mi", "mi")]
    assert "mine" in found


# Output and code


def test_output_is_published_with_these_options(shell: Any) -> None:
    """`ipython/extension/line.rs` and `ipython/late_line.rs` call it by keywords."""
    options = {"metadata": {"mine": {}}, "transient": {"display_id": "3"}}
    shell.display_pub.publish(data={"text/plain": "shown"}, update=False, **options)
    (output,) = shell.display_pub.outputs
    assert output["data"] == {"text/plain": "shown"}
    assert output["metadata"] == {"mine": {}}


def test_the_file_of_a_cells_code_has_its_number(shell: Any) -> None:
    """`recording/trace/cells.rs` asks the compiler, or reads the name that IPython 7 gives."""
    run(shell, "1")
    run(shell, "def mine(): ...")
    file = shell.user_ns["mine"].__code__.co_filename
    if is_7:
        assert not hasattr(shell.compile, "format_code_name")
        assert file.startswith("<ipython-input-2-")
    else:
        assert shell.compile.format_code_name(file) == ("Cell", "In[2]")
        assert shell.compile.format_code_name(__file__) is None


def test_the_lines_of_a_cell_are_in_the_line_cache(shell: Any) -> None:
    """`recording/trace/cells.rs` counts the lines that IPython took away."""
    run(shell, "\n\ndef mine(): ...")
    file = shell.user_ns["mine"].__code__.co_filename
    entry: Any = linecache.cache[file]
    assert [line.strip() for line in entry[2]] == ["def mine(): ..."]


# The kernel


def test_a_kernel_names_the_file_of_a_cell_by_its_text() -> None:
    """`recording/trace/cells.rs` computes it, if the compiler does not tell the cell of a file."""
    kernels = pytest.importorskip("ipykernel.compiler")
    if not hasattr(kernels, "XCachingCompiler"):
        pytest.skip("IPython names it")
    compiler = kernels.XCachingCompiler()
    names = [compiler.get_code_name("1", transformed, 3) for transformed in ("1", "1\n")]
    assert names[0] == names[1] != compiler.get_code_name("2", "1", 3)


def test_a_kernels_shell_has_a_kernel() -> None:
    """`ipython/late_line.rs` and `ipython/extension/line.rs` tell a kernel's shell by it."""
    zmqshell = pytest.importorskip("ipykernel.zmqshell")
    assert hasattr(zmqshell.ZMQInteractiveShell, "kernel")


def test_a_kernels_output_is_published_with_these_options() -> None:
    """`ipython/late_line.rs` updates a line that was shown, by its `display_id`."""
    zmqshell = pytest.importorskip("ipykernel.zmqshell")
    options = inspect.signature(zmqshell.ZMQDisplayPublisher.publish).parameters
    assert {"data", "metadata", "transient", "update"} <= set(options)


def test_a_context_variable_is_the_parent_of_outputs() -> None:
    """`ipython/extension/parent.rs` copies variables of this name to show something elsewhere."""
    ipykernel = pytest.importorskip("ipykernel")
    if ipykernel.version_info < (7,):
        pytest.skip("one parent for all threads")
    from ipykernel.zmqshell import ZMQDisplayPublisher  # noqa: PLC0415 (of newer ones)

    publisher = ZMQDisplayPublisher()
    variable = publisher._parent_header
    assert type(variable) is contextvars.ContextVar
    assert variable.name == "parent_header"
