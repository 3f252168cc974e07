"""What the Tab key offers, by IPython's own completer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import IPython
import pytest
from gpumem import _completion, _gpumem, sim
from gpumem._commands import COMMANDS
from IPython.core.completer import provisionalcompleter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

pytestmark = pytest.mark.ipython

README = Path(__file__).parents[2] / "README.md"

ACTIONS = {
    *("on", "off", "status", "reset", "use", "baseline", "release", "expect", "holders", "why"),
    *("who", "sessions", "report", "snapshot"),
}
REPORT_OPTIONS = {"--text", "--html", "--compare", "--session", "--processes"}


@pytest.fixture
def typing(shell: Shell) -> Iterator[Shell]:
    """Yield a shell with a simulated device, two names and two baselines."""
    shell.run("from gpumem import sim\n%gpumem use sim host\nsim.use(n_devices=2)")
    shell.run("losses = [1]\nweights = 2")
    shell.run("%%gpumem\n1\n")
    shell.run("%gpumem baseline before\n%gpumem baseline before_fix")
    yield shell
    sim.use()


def offered(shell: Shell, line: str) -> set[str]:
    """Return what the line may become, without what it is already."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(line, len(line)))
    return {(line[: it.start] + it.text).split()[-1] for it in found}


def test_tab_offers_the_users_names_and_not_those_of_the_shell(typing: Shell) -> None:
    found = _completion.OF_ACTIONS["why"](typing)
    assert {"losses", "weights"} <= set(found)
    assert not {"_", "__", "__name__", "In"} & set(found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%gpumem re", {"reset", "release", "report"}),
        ("%gpumem ", ACTIONS),
        ("%gpumem on --", {"--interval"}),
        ("%gpumem why --", {"--device", "--depth"}),
        ("%gpumem release --d", {"--dry-run"}),
        ("%gpumem sessions --", {"--all"}),
        ("%gpumem why --device ", {"host", "sim:0", "sim:1"}),
        ("%gpumem why --device sim:", {"sim:0", "sim:1"}),
        ("%gpumem why --device=sim:", {"--device=sim:0", "--device=sim:1"}),
        ("%gpumem why lo", {"losses"}),
        ("%gpumem why --depth 2 lo", {"losses"}),
        ("%gpumem holders --device sim:0 we", {"weights"}),
        ("%gpumem release tr", {"traceback"}),
        ("%gpumem release cache we", {"weights"}),
        ("%gpumem use si", {"sim"}),
        ("%gpumem use sim au", {"auto"}),
        ("%gpumem baseline be", {"before", "before_fix"}),
        ("%gpumem on --interval 1", {"1ms", "10ms", "100ms", "1s"}),
        ("%gpumem report --", REPORT_OPTIONS),
        ("%gpumem report --compare before_", {"before_fix"}),
        ("%gpumem_report --", REPORT_OPTIONS),
        ("%gpumem_report --compare be", {"before", "before_fix"}),
        ("%gpumem_report --session la", {"last"}),
        ("%%gpumem --de", {"--device", "--devices"}),
        ("%%gpumem --device sim:", {"sim:0", "sim:1"}),
        ("%%gpumem --source ho", {"host"}),
        ("%%gpumem --trace --qu", {"--quiet"}),
        ("x = 1\n%gpumem sta", {"status"}),
    ],
)
def test_tab_offers(typing: Shell, line: str, expected: set[str]) -> None:
    found = offered(typing, line)
    # Older versions mix names and keywords in.
    assert found == expected if IPython.version_info >= (8, 6) else expected <= found


def test_a_failure_of_ours_leaves_ipythons_completion(
    typing: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError

    monkeypatch.setattr(_gpumem, "device_labels", fail)
    assert "sim:0" not in offered(typing, "%%gpumem --device ")
    assert offered(typing, "%gpumem stat") == {"status"}


def test_after_unloading_nothing_is_offered(shell: Shell) -> None:
    assert "who" in offered(shell, "%gpumem wh")
    shell.run_line_magic("unload_ext", "gpumem")
    assert shell.Completer.custom_matchers == []
    assert "who" not in offered(shell, "%gpumem wh")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("%gpumem hodlers", "did you mean 'holders'?"),
        ("%gpumem statsu", "did you mean 'status'?"),
        ("%gpumem on --intervl 5ms", "did you mean '--interval'?"),
        ("%gpumem_report --txt", "did you mean '--text'?"),
        ("%gpumem report --sesion last", "did you mean '--session'?"),
        ("%%gpumem --lable x\n1", "did you mean '--label'?"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(shell: Shell, line: str, hint: str) -> None:
    (said,) = shell.run(line).stderr.splitlines()
    assert said.startswith("UsageError: %")
    assert hint in said


def test_report_opens_the_report(shell: Shell) -> None:
    shell.run("%%gpumem\nx = 1")
    shell.run("%gpumem report --text\n%gpumem_report --text")
    by_action, by_magic = shell.lines[-2:]
    assert by_action == by_magic
    assert gpumem.report().runs
    assert "gpumem.types.Report" not in shell.run("%gpumem report").result


def test_the_help_has_the_table_of_the_readme(shell: Shell) -> None:
    table = README.read_text(encoding="utf-8").partition("## Commands")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*) \| (.*) \|$", table, re.MULTILINE)[1:]
    plain = [tuple(re.sub(r"[`*]", "", text) for text in row) for row in rows]
    assert tuple(plain) == COMMANDS
    pages: list[dict[str, Any]] = []
    shell.hooks.show_in_pager.add(lambda page, **_: pages.append(page), priority=0)
    text = " ".join((shell.run("%gpumem?").stdout + str(pages)).replace("\\n", " ").split())
    for typed, purpose in COMMANDS:
        assert f"{typed} {purpose}" in text.replace('\\"', '"').replace("\\'", "'")
