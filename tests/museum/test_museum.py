"""Each known leak of a library with the real library: it leaks, is matched, and its cure heals it.

A session is a file in the format of ``tests/sessions``. Its header names the entry. The line
``# cure`` says where the cure goes: the session with the cure is the healthy twin, of which nothing
is matched. If the cure is a changed line, the header ``twin`` has the change. README.md says more.
"""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.run import parse
from tests.sessions.score import growth, missing, run

HERE = Path(__file__).parent
CATALOGUE = HERE.parents[1] / "core" / "analyzer" / "src" / "known_leaks"
SESSIONS = sorted((HERE / "sessions").glob("*.py"))
CURE = "# cure"


def libraries() -> dict[str, str]:
    """Return the library of each entry."""
    texts = [path.read_text("utf-8") for path in CATALOGUE.glob("*.rs")]
    found = re.findall(r'^    id: "(.+)",\n    library: "(.+)",$', "\n".join(texts), re.MULTILINE)
    return dict(found)


def known(said: dict[str, Any], entry: str) -> list[dict[str, Any]]:
    """Return the findings that are this leak."""
    found = said["findings"]
    return [it for it in found if it["known_leak"] and it["known_leak"]["id"] == entry]


def lives_on(said: dict[str, Any]) -> list[str]:
    return [it["title"] for it in said["findings"] if it["kind"] == "outlived"]


def raised(said: dict[str, Any]) -> list[str]:
    return [it["error"] for it in said["log"] if it["error"]]


def version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of this Python"


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_entry(path: Path) -> None:
    truth = parse(path).truth
    entry, library = truth["entry"], libraries()[truth["entry"]]
    said = run(path)
    if skipped := missing(said):
        pytest.skip(skipped)
    assert raised(said) == []
    found = known(said, entry)
    if not found:
        installed = f"{library} {version_of(library)}"
        is_healed = not growth(said) and not lives_on(said)
        reason = "healed in" if is_healed else "leaks, but is not matched, in"
        pytest.fail(f"{entry}: {reason} {installed}\n{said['text']}")
    fix = found[0]["fix"]
    if "twin" in truth:
        twin = json.loads(truth["twin"])
    else:
        assert fix, found[0]["title"]
        twin = {"before": fix["before"] or CURE, "after": fix["after"]}
    assert any(twin["before"] in cell.source for cell in parse(path).cells)
    cured = run(path, "--replace", json.dumps(twin))
    assert raised(cured) == []
    assert known(cured, entry) == []
    assert growth(cured) == [], cured["text"]
    assert lives_on(cured) == []


def test_every_entry_has_a_session() -> None:
    """Those outside the allocator need a GPU."""
    shown = {parse(path).truth["entry"] for path in SESSIONS}
    pattern = re.compile(
        r'^    id: "([^"]+)",(?:(?!^}).*\n)*?    pattern: LeakPattern::Outside', re.MULTILINE
    )
    texts = [path.read_text("utf-8") for path in CATALOGUE.glob("*.rs")]
    unseen = {entry for text in texts for entry in pattern.findall(text)}
    assert shown == set(libraries()) - unseen
