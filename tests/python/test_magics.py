"""What is typed after ``%gpumem``, ``%%gpumem`` and ``%gpumem_report``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import gpumem
import IPython
import pytest

from tests.support.shell import shells

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

SOURCES = "cuda, nvml, torch, cupy, jax, tensorflow, rmm, numba, bitsandbytes, host, sim"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--wrong", "unrecognized arguments: --wrong"),
        ("--label", "expected one argument"),
        ("--device cuda:9", "unknown device 'cuda:9': there is "),
        ("--source nosuch", f"unknown source 'nosuch': there is {SOURCES}"),
        ("extra", "unrecognized arguments: extra"),
        ("--interval 5", 'argument --interval: "5" has no unit: write 5ms or 5s'),
        ("--interval soon", '"soon" is not a duration: write one as 10ms or 0.5s'),
        ("--interval 100us", "100 µs is not an interval of the sampler: write one from 1ms to 1s"),
        ("--interval 2s", "2.0 s is not an interval of the sampler: write one from 1ms to 1s"),
        ("--label 'never closed", "No closing quotation"),
    ],
)
@pytest.mark.parametrize("above", ["", "\n\n", "%%time\n"])
@pytest.mark.parametrize("record_all", [True, False])
def test_a_wrong_option_does_not_run_the_cell(
    shell: Shell, above: str, line: str, words: str, *, record_all: bool
) -> None:
    shell.run(f"%gpumem {'on' if record_all else 'off'}")
    outcome = shell.run(f"{above}%%gpumem {line}\nran = True")
    (said,) = [text for text in outcome.stderr.splitlines() if text] or [""]
    assert said.startswith("UsageError: %%gpumem: ")
    assert words in said
    assert said.endswith("(help: %%gpumem?)")
    assert "ran" not in shell.user_ns
    assert shell.run("%%gpumem\nran = True\n1 + 1").result == "2"
    assert shell.user_ns["ran"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%gpumem nosuch", "invalid choice: 'nosuch'"),
        ("%gpumem on extra", "on takes no 'extra'"),
        ("%gpumem on --interval 5", '"5" has no unit: write 5ms or 5s'),
        ("%gpumem off --interval 5ms", "--interval belongs to on, or to %%gpumem"),
        ("%gpumem who me", "who takes no 'me'"),
        ("%gpumem who --device sim:0", "--device belongs to why, or to %%gpumem"),
        ("%gpumem --depth 2", "--depth belongs to why"),
        ("%gpumem reset --dry-run", "--dry-run belongs to release"),
        ("%gpumem why --depth -1", "--depth must be from 1 to 100, not -1"),
        ("%gpumem why --depth 0", "--depth must be from 1 to 100, not 0"),
        ("%gpumem why --depth 1000000", "--depth must be from 1 to 100, not 1000000"),
        ("%gpumem why nope", "why: no name 'nope' is known (help"),
        ("%gpumem holders reprot", "holders: no name 'reprot' is known; did you mean 'report'?"),
        ("%gpumem why report.losses", "why takes a variable, not a path: write why report"),
        ("%gpumem use", "use needs the name of a source, or auto"),
        ("%gpumem use sim,nosuch", f'unknown source "nosuch": use {SOURCES}, or auto'),
        ("%gpumem --wrong", "unrecognized arguments: --wrong"),
        ("%gpumem_report --wrong", "unrecognized arguments: --wrong"),
        ("%gpumem_report --html", "expected one argument"),
        ("%gpumem_report --html {tmp}/report.svg", "end 'report.svg' in .html"),
        ("%gpumem_report --html {tmp}/no/report.html", "No such file or directory"),
    ],
)
def test_a_wrong_line_is_refused_in_one_line(
    shell: Shell, tmp_path: Path, line: str, words: str
) -> None:
    shell.user_ns["report"] = None
    outcome = shell.run(line.format(tmp=tmp_path))
    (said,) = outcome.stderr.splitlines()
    assert said.startswith(f"UsageError: {line.split(maxsplit=1)[0]}: ")
    assert words in said
    assert shell.lines == []
    assert list(tmp_path.glob("report*")) == []
    assert shell.run("1 + 1").result == "2"


def test_a_name_that_holds_nothing_is_no_error(shell: Shell) -> None:
    shell.run("report = 1")
    shell.run("%gpumem why report")
    assert shell.lines == ["report holds no device memory"]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("interval = 'soon'", '"soon" is not a duration'),
        ("quiet = 'soon'", "expected a boolean"),
        ("rules = {'nope': 1}", 'no threshold is named "nope"'),
        ("source_text = 'half'", "not the str 'half'"),
    ],
)
def test_a_setting_that_is_refused_changes_nothing(
    shell: Shell, caplog: pytest.LogCaptureFixture, assignment: str, words: str
) -> None:
    name = assignment.split(maxsplit=1)[0]
    shell.run("%config GpuMem.interval = '20ms'")
    before = shell.run(f"%config GpuMem.{name}").result
    shell.run(f"%config GpuMem.{assignment}")
    assert words in caplog.text
    assert shell.run(f"%config GpuMem.{name}").result == before
    assert shell.run("%reload_ext gpumem").errors == ["None", "None"]
    assert shell.run(f"%config GpuMem.{name}").result == before
    assert shell.run("%config GpuMem.interval").result == "'20ms'"
    shell.run("%%gpumem\n1")
    assert n_runs() == 1


def test_a_wrong_setting_of_a_profile_is_logged_and_left_out(
    new_shell: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shell = new_shell(loaded=False)
    shell.config.GpuMem.interval = "soon"
    shell.config.GpuMem.record_all = True
    assert shell.run("%load_ext gpumem").errors == ["None", "None"]
    (said,) = (it.getMessage() for it in caplog.records if it.name == "gpumem")
    assert said.startswith("GpuMem.interval: ")
    assert said.endswith("; the default is used")
    assert shell.run("%config GpuMem.interval").result == "'1ms'"
    assert recorded(shell, "2")[-1] == "2"


def test_without_a_gpu_the_host_is_worth_a_line(shell: Shell) -> None:
    shell.run("%gpumem use host\n%gpumem on")
    n_lines = len(shell.lines)
    shell.run("nothing = 1")
    assert shell.lines[n_lines:] == []
    n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 50
    shell.run(f"kept = bytearray(b'1') * {n_bytes}")
    (line,) = shell.lines[n_lines:]
    assert line.startswith("host · +")


def test_on_says_what_counts(shell: Shell) -> None:
    shell.run("from gpumem import sim\nsim.use()\n%gpumem use sim\n%gpumem on")
    assert shell.lines[-1].endswith("frees 1 % of sim:0, or with a new finding")
    shell.run("%config GpuMem.quiet = True\n%gpumem on")
    assert shell.lines[-1].endswith("`GpuMem.quiet` is True): see %gpumem_report")


def test_on_records_every_cell_off_only_the_magic(shell: Shell) -> None:
    assert recorded(shell, "1") == []
    assert recorded(shell, "%%gpumem\n2") == ["2"]
    shell.run("%gpumem on")
    assert recorded(shell, "3") == ["2", "3"]
    shell.run("%gpumem off")
    assert recorded(shell, "4") == ["2", "3"]


def test_without_arguments_it_shows_the_use_of_each_device(shell: Shell) -> None:
    shell.run("from gpumem import sim\n%gpumem use sim\nsim.use(total_bytes=1 << 30)")
    shell.run("w = sim.tensor(256 << 20, requires_grad=True)\nx = sim.tensor(128 << 20)")
    shell.run("freed = sim.tensor(64 << 20)\ndel freed")
    shell.run("%gpumem")
    device, *parts, host = shell.lines[-1].splitlines()
    assert device.startswith("sim:0  Simulated GPU  448 MiB of 1 GiB · this process 448 MiB")
    assert host.startswith("host ")
    columns = [re.split(r"\s{2,}", part.strip()) for part in parts]
    assert [(size, words) for size, _, words in columns] == [
        ("256 MiB", "parameters"),
        ("128 MiB", "your names"),
        ("64 MiB", "cache"),
        ("576 MiB", "free"),
    ]
    assert [bar for _, bar, _ in columns] == ["█" * 6, "█" * 3, "█▌", "░" * 14]


@pytest.mark.parametrize(
    "cell", ["%gpumem", "%gpumem status\n%gpumem", "%%gpumem?", "%%gpumem --wrong\n1", "%gpumem?"]
)
def test_a_cell_that_talks_to_gpumem_is_no_run(shell: Shell, cell: str) -> None:
    shell.run("%gpumem on")
    assert recorded(shell, cell) == []


def n_runs() -> int:
    return len({row["run"] for row in gpumem.report().runs})


def recorded(shell: Shell, cell: str) -> list[str]:
    shell.run(cell)
    return list(dict.fromkeys(row["cell"]["label"] for row in gpumem.report().runs))


def test_each_action_says_what_is_so_now(shell: Shell) -> None:
    def said(line: str) -> list[str]:
        shell.run(line)
        text: str = shell.lines[-1]
        return text.splitlines()

    shell.run("%gpumem use host")
    assert said("%gpumem on") == [
        "recording every cell (`%gpumem off`: only cells with %%gpumem)",
        "a line appears if a cell keeps or frees 1 % of host memory, or with a new finding",
        "no GPU is seen yet, so host memory counts (`%gpumem status` says why)",
    ]
    assert said("%gpumem off") == ["recording cells with %%gpumem (`%gpumem on`: every cell)"]
    assert said("%gpumem use sim") == [
        "  source  device  what it gives, or why not",
        "● host    host    memory that this process keeps, used memory of the machine",
        "● sim     sim:0   a simulated device with a real caching allocator",
    ]
    # A chosen source that does not answer has a reason.
    _, rmm, host, sim = said("%gpumem use rmm sim")
    assert (rmm[:5], rmm[-12:]) == ("○ rmm", "not imported")
    assert (host[:6], sim[:5]) == ("● host", "● sim")
    shell.run("%%gpumem --quiet\nkept = 1")
    status = said("%gpumem status")
    assert status[1] == "recorded so far: 1 run of 1 cell"
    assert status[2].startswith("kept ")
    assert status[3].startswith("what holds memory: ")
    assert any(line.startswith("● sim ") and " sim:0 " in line for line in status)
    assert any(line.startswith("○ cuda ") and "left out by" in line for line in status)
    assert all(len(line) <= 80 for line in status if not line.startswith("kept in "))
    assert said("%gpumem reset") == ["forgot 1 run of 1 cell"]
    assert said("%gpumem status")[1] == "recorded so far: 0 runs of 0 cells"
    now = [line for line in said("%gpumem") if not line.startswith(" ")]
    assert [line.split(maxsplit=1)[0] for line in now] == ["sim:0", "host"]
    assert all(" of " in line for line in now)


@pytest.mark.skipif(IPython.version_info < (9,), reason="IPython 8 itself stops at such a cell")
def test_a_cell_that_is_no_text_is_a_run_like_another(shell: Shell) -> None:
    shell.run("%gpumem on")
    shell.run("x = '\ud800'")
    assert recorded(shell, "2") == ["x = '���'", "2"]


def test_a_label_names_the_run(shell: Shell) -> None:
    assert recorded(shell, "%%gpumem --label 'two words'\n1") == ["two words"]


def test_a_device_alone_is_read(shell: Shell) -> None:
    shell.run("%gpumem use sim")
    shell.run("%%gpumem --device host\n1")
    assert [row["device"] for row in gpumem.report().runs] == ["host"]


def test_a_source_alone_is_read_for_that_run(shell: Shell) -> None:
    shell.run("from gpumem import sim\nkept = sim.tensor(1 << 20)")
    shell.run("%%gpumem --source torch\n1")
    shell.run("%%gpumem\n1")
    rows = gpumem.report().runs
    assert [row["device"] for row in rows] == ["host", "sim:0", "host"]


def test_quiet_records_and_says_nothing(shell: Shell) -> None:
    shell.run("%%gpumem -q\n1")
    assert shell.lines == []
    assert n_runs() == 1


@pytest.mark.parametrize("name", ["%%gpumem", "%gpumem", "%gpumem_report"])
def test_help_explains_the_magic(shell: Shell, name: str) -> None:
    pages: list[dict[str, Any]] = []
    shell.hooks.show_in_pager.add(lambda page, **_: pages.append(page), priority=0)
    outcome = shell.run(f"{name}?")
    said = outcome.stdout + repr(pages)
    assert f"  {name} [" in said
    assert "%%%" not in said


def test_report_as_text_is_shown_once_and_keeps_no_value(shell: Shell) -> None:
    shell.run("%%gpumem -q\nx = 1")
    outcome = shell.run("%gpumem_report --text")
    assert shell.lines == [gpumem.report().text()]
    assert (outcome.result, outcome.stdout) == ("None", "")


def test_report_is_printed_where_nothing_draws(shell: Shell) -> None:
    shell.run("%%gpumem -q\nx = 1")
    title, *_ = shell.run("%gpumem_report").stdout.splitlines()
    assert "emory · " in title
    assert title.endswith(" · 1 run of 1 cell")


@pytest.mark.parametrize("name", ["page", "page.html", "my page.html"])
def test_report_as_a_page(shell: Shell, tmp_path: Path, name: str) -> None:
    shell.run("%%gpumem -q\nx = 1")
    outcome = shell.run(f'%gpumem_report --html "{tmp_path / name}"')
    assert outcome.stderr == ""
    written = (tmp_path / name).with_suffix(".html")
    assert shell.lines == [f"wrote {written}"]
    assert written.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_profile_sets_the_defaults(tmp_path: Path) -> None:
    with shells(tmp_path) as new:
        shell = new(record_all=True, quiet=True, source_text="none")
        shell.run("secret = 1")
        assert "secret" not in gpumem.report().to_json()
        assert n_runs() == 1


@pytest.mark.parametrize(
    ("kept", "is_readable"), [("full", True), ("hash", False), ("none", False)]
)
def test_source_is_kept_as_the_user_chose(shell: Shell, kept: str, *, is_readable: bool) -> None:
    shell.run_line_magic("config", f"GpuMem.source_text = {kept!r}")
    shell.run("%gpumem on")
    for cell in ("secret = 1", "secret = 1", "secret = 2"):
        shell.run(cell)
    written = gpumem.recording().to_bytes()
    assert (b"secret" in written) == is_readable
    assert len({row["cell"]["id"] for row in gpumem.report().runs}) == 2
    shell.run_line_magic("config", "GpuMem.source_text = 'full'")


@pytest.mark.parametrize("kept", ["hash", "none"])
def test_labels_are_kept_in_any_case_as_the_help_says(shell: Shell, kept: str) -> None:
    shell.run_line_magic("config", f"GpuMem.source_text = {kept!r}")
    shell.run(
        "%%gpumem -l of-the-run\nimport gpumem\nwith gpumem.record('of-the-block'): secret = 1\n"
        "gpumem.mark('of-the-mark')"
    )
    written = gpumem.recording().to_bytes()
    assert b"secret" not in written
    assert all(label in written for label in (b"of-the-run", b"of-the-block", b"of-the-mark"))
    assert "Labels are kept" in shell.run("%config GpuMem").stdout
    shell.run_line_magic("config", "GpuMem.source_text = 'full'")


def test_the_magic_can_be_called_by_name(shell: Shell) -> None:
    shell.run("get_ipython().run_cell_magic('gpumem', '-q', 'inner = 5')")
    assert shell.user_ns["inner"] == 5
    assert n_runs() == 1


def test_a_second_load_changes_nothing(shell: Shell) -> None:
    before = state(shell)
    gpumem.load_ipython_extension(shell)
    assert state(shell) == before
    shell.run("%%gpumem\n1")
    assert len(shell.lines) == 1


def test_unload_leaves_the_shell_as_it_was(new_shell: Any) -> None:
    shell = new_shell(loaded=False)
    # IPython registers the magics of extensions with the first of them.
    shell.run_line_magic("load_ext", "storemagic")
    before = state(shell)
    shell.run_line_magic("load_ext", "gpumem")
    assert state(shell) != before
    shell.run("%gpumem on")
    shell.run_line_magic("unload_ext", "gpumem")
    assert state(shell) == before
    shell.run("kept = 1")
    assert n_runs() == 0
    shell.run_line_magic("load_ext", "gpumem")
    shell.run("%%gpumem\n1")
    assert len(shell.lines) == 2


@pytest.mark.parametrize(
    "cell",
    [
        "ip.input_transformers_cleanup.clear()",
        "ip.configurables.clear()",
        "for callbacks in ip.events.callbacks.values(): callbacks.clear()",
        "del ip.magics_manager.magics['line']['gpumem']",
    ],
)
def test_what_a_cell_took_out_keeps_nobody_from_loading_again(shell: Shell, cell: str) -> None:
    shell.run(f"ip = get_ipython()\n{cell}")
    again = shell.run("%reload_ext gpumem")
    assert again.errors == ["None", "None"]
    assert recorded(shell, "%%gpumem\n1 + 1") == ["1 + 1"]


def test_without_its_transformer_a_magic_runs_the_cell_once(shell: Shell) -> None:
    shell.run("n_runs = 0\nget_ipython().input_transformers_cleanup.clear()")
    shell.run("%%gpumem\nn_runs += 1")
    assert shell.user_ns["n_runs"] == 1


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        ("%%gpumem", "incomplete"),
        ("%%gpumem\nx = 1", "incomplete"),
        ("%%gpumem -l mine\nfor x in y:\n    x\n\n", "complete"),
        ("%%time\nx = 1", "incomplete"),
    ],
)
def test_in_a_terminal_a_cell_goes_on_until_an_empty_line(
    shell: Shell, typed: str, status: str
) -> None:
    assert shell.check_complete(typed)[0] == status


def test_a_magic_of_the_users_comes_back(new_shell: Any) -> None:
    shell = new_shell(loaded=False)
    shell.register_magic_function(lambda line: f"mine {line}", "line", "gpumem")
    shell.run_line_magic("load_ext", "gpumem")
    shell.run_line_magic("unload_ext", "gpumem")
    assert shell.run_line_magic("gpumem", "x") == "mine x"


def state(shell: Shell) -> tuple[Any, ...]:
    """Everything that loading may change."""
    callbacks = shell.events.callbacks
    magics = shell.magics_manager.magics
    return (
        {event: list(callbacks[event]) for event in callbacks},
        {kind: sorted(magics[kind]) for kind in magics},
        list(shell.input_transformers_cleanup),
        [type(each).__name__ for each in shell.configurables],
        sorted(shell.magics_manager.registry),
        os.getcwd(),  # noqa: PTH109 (only compared)
    )
