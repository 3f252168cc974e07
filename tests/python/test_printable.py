"""How foreign text is printed, checked against Python's tables of Unicode."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from gpumem import _gpumem

# A text: a list of a million letters is walked by every look of all tests beside these.
CHARACTERS = "".join(
    chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) != "Cs"
)

# Of Cf, and drawn all the same: the signs that stand around a number.
DRAWN = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}


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
