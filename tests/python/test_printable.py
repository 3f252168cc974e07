"""What is shown of words that somebody else chose, held to Python's tables of Unicode."""

from __future__ import annotations

import logging
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.python.conftest import Shell

# A text: a list of a million letters is walked by every look of all tests beside these.
CHARACTERS = "".join(
    chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) != "Cs"
)

# Of Cf, and drawn all the same: the signs that stand around a number.
DRAWN = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}

# As a name that turns the writing, hides a text, ends its line and clears the terminal.
STEERING = "na\u202eme\u200b\U000e0041\u2028\x1b[2J"
SHOWN = "name  [2J"


@pytest.mark.parametrize("category", ["Cc", "Cf", "Zl", "Zp"])
def test_what_steers_is_not_shown(category: str) -> None:
    of_category = {it for it in CHARACTERS if unicodedata.category(it) == category}
    shown = {it for it in of_category if it in _gpumem._printable(f"a{it}b")}
    assert shown == DRAWN & of_category


def test_letters_signs_and_marks_are_shown() -> None:
    kept = [it for it in CHARACTERS if unicodedata.category(it)[0] in "LNPS"]
    unseen = set("\u115f\u1160\u3164\uffa0")
    assert {it for it in kept if it not in _gpumem._printable(f"a{it}b")} == unseen


@pytest.mark.parametrize(
    "text", ["க்\u200cஷ", "👩\u200d💻", "🏳\ufe0f\u200d🌈", "葛\U000e0100", "1\ufe0f\u20e3"]
)
def test_what_writing_needs_stays(text: str) -> None:
    assert _gpumem._printable(text) == text


@pytest.fixture
def named(shell: Shell) -> Shell:
    """Return a shell that recorded runs, blocks and marks under such a name."""
    shell.user_ns.update(STEERING=STEERING, gpumem=gpumem)
    shell.run("from gpumem import sim\nsim.use()\nkept = []")
    shell.run(
        "%%gpumem\nclass Kept(list): pass\nKept.__name__ = STEERING\nkept = Kept()\n"
        "for _ in gpumem.steps(range(12), STEERING):\n    kept.append(sim.tensor(1 << 26))"
    )
    # Outside of a recorded cell each is a run of its own.
    shell.run(
        "for _ in range(12):\n    with gpumem.record(STEERING): kept.append(sim.tensor(1 << 26))"
    )
    return shell


def is_clean(text: str) -> bool:
    return not any(it in text for it in "\u202e\u200b\U000e0041\u2028\x1b")


@pytest.mark.parametrize(
    "ask",
    [
        "%gpumem why",
        f"%gpumem baseline {STEERING}",
        "%gpumem_report --text",
    ],
)
def test_no_answer_steers_the_terminal(named: Shell, ask: str) -> None:
    named.run("%gpumem baseline before")
    magic, _, line = ask[1:].partition(" ")
    named.run_line_magic(magic, line)
    assert is_clean(named.lines[-1])
    assert all(is_clean(line) for line in named.lines)


def test_neither_pictures_nor_pages_are_steered(named: Shell, tmp_path: Path) -> None:
    report = gpumem.report()
    assert any(SHOWN in finding.path for finding in report.findings)
    for name in ("report.svg", "report.html"):
        report.save(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert is_clean(text.partition("<script")[0])
    # Sentences are wrapped at blanks.
    picture = (tmp_path / "report.svg").read_text(encoding="utf-8")
    assert all(word in picture for word in SHOWN.split())
    assert named.run("1").result == "1"


def test_a_refusal_does_not_steer(shell: Shell) -> None:
    outcome = shell.run("get_ipython().run_line_magic('gpumem', '--x\\u202e')")
    assert "\u202e" not in outcome.stderr + outcome.stdout


def test_our_log_does_not_steer(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: object) -> Any:
        raise ValueError(STEERING)

    class Own:
        pass

    gpumem.register_adapter(Own, fails)
    shell.user_ns["own"] = Own()
    with caplog.at_level(logging.WARNING):
        shell.run("gpumem = __import__('gpumem')\ngpumem.holders()")
    assert SHOWN in caplog.text
    assert is_clean(caplog.text)
