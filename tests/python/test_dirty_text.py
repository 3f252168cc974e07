"""Names, labels, paths and messages that hold anything: in no output do they leave their place."""

from __future__ import annotations

import csv
import html
import io
import json
import logging
import pickle
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import gpumem
import pytest
from gpumem import _file_page, _gpumem, _table
from gpumem.cli import exits, files, github, issue, junit, main, terminal
from gpumem.cli.check import Checked, _lines
from gpumem.cli.gate import Limits, judged
from gpumem.types import Comparison

from tests.python import snapshots

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.python.conftest import Shell

DIRTY = {
    "a line break": "name\nPWN",
    "a workflow command": "name\r\n::error file=x::PWN",
    "a command at its start": "::error file=x::PWN",
    "an older command": "name ##[error]PWN",
    "a carriage return": "name\rPWN",
    "a line separator": "name\u2028PWN\x85PWN\x0bPWN",
    "an escape": "name\x1b]0;PWN\x07\x1b[2J",
    "a control of one byte": "name\x9b2J\x00",
    "a change of direction": "name\u202ePWN\u2066",
    "what nobody sees": "na\u200b\U000e0041me\ufeff",
    "a picture": "name\n\n![PWN](http://example.invalid/x.png)",
    "a link": "[PWN](http://example.invalid)",
    "a tag": "<img src=x onerror=alert(1)>",
    "the end of a tag": "\"'></pre></td><script>alert(1)</script>",
    "an entity": "&lt;img&gt; &#x202e;PWN",
    "emphasis": "__name__ ~~PWN~~",
    "a column": "a|b\n|---|---|\n|PWN|",
    "a formula": "=HYPERLINK(1)",
    "a formula after a tab": "\t@SUM(1)",
    "the end of code": "`name`\n```\n# PWN",
    "an annotation's own escape": "%0A::error::PWN",
}

# Characters that a text of several lines may hold beside the visible ones.
BREAKS = {"\n"}

# The elements of a table of ours.
PLAIN = "table tr th td pre"


@pytest.fixture(params=list(DIRTY.values()), ids=list(DIRTY))
def dirty(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture
def recorded(dirty: str, shell: Shell) -> Shell:
    """Return a shell whose cells have that text in all of their names."""
    shell.user_ns.update(DIRTY=dirty)
    shell.run("import gpumem\nfrom gpumem import sim\nsim.use(1 << 30)")
    shell.run("class Kept(list): pass\nKept.__name__ = Kept.__qualname__ = DIRTY\nkept = Kept()")
    shell.run("with gpumem.record(DIRTY): kept.append(sim.tensor(8 << 20))")
    # A line of code cannot begin with a colon.
    comment = dirty.replace("\n::", "::")
    steps = "for _ in gpumem.steps(range(12), DIRTY): kept.append(sim.tensor(1 << 20))"
    shell.run(f"%%gpumem\n{steps} # {comment}")
    shell.run("%%gpumem\nraise type('OutOfMemoryError', (RuntimeError,), {})(DIRTY)")
    SAVED[dirty] = gpumem.recording().to_bytes()
    return shell


SAVED: dict[str, bytes] = {}
"""The recordings of those cells: the tests of outputs need them only once."""


@pytest.fixture
def recording(dirty: str, request: pytest.FixtureRequest) -> gpumem.types.Recording:
    if dirty not in SAVED:
        request.getfixturevalue("recorded")
    return gpumem.types.Recording.from_bytes(SAVED[dirty])


def check_characters(text: str, allowed: set[str] = BREAKS) -> None:
    """Check that no character steers, hides or breaks a line by itself."""
    bad = {it for it in text if unicodedata.category(it) in {"Cc", "Cf", "Zl", "Zp"}}
    assert bad <= allowed, bad


def check_lines(text: str, allowed: set[str] = BREAKS) -> None:
    """Check that the text does not begin a line of the output."""
    check_characters(text, allowed)
    lines = text.split("\n")
    starts = [line for line in lines if re.match(r"PWN|!\[|\|PWN|# PWN|\s*::", line)]
    assert "##[" not in text
    assert starts == []


class Tags(HTMLParser):
    """The elements that a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def check_html(text: str, allowed: str) -> None:
    check_characters(text)
    assert Tags(text).found <= set(allowed.split())


def checked(recording: gpumem.types.Recording, dirty: str) -> Checked:
    found = judged(
        gpumem.report(recording), Limits(frozenset({"leak", "growing", "oom"}))
    ).violations
    assert found
    traceback, cells = f"Error\n  {dirty}", {1: f"In [1] {dirty}"}
    return Checked(Path(dirty), 3, found, dirty, traceback, failed=1, cells=cells)


def test_what_a_notebook_shows_is_clean(recorded: Shell, dirty: str) -> None:
    recorded.run_line_magic("gpumem", "why")
    recorded.run_line_magic("gpumem", "baseline " + re.sub(r"[\r\n'\"]", " ", dirty))
    recorded.run_line_magic("gpumem_report", "--text")
    recorded.run_line_magic("gpumem", "release")
    refused = recorded.run("get_ipython().run_line_magic('gpumem', '--x' + DIRTY)")
    holders = gpumem.holders()
    for line in [*recorded.lines, holders.text()]:
        check_lines(line)
    check_characters(refused.stderr)
    check_html(holders._repr_html_(), PLAIN)


TEXTS: dict[str, Callable[[gpumem.types.Recording, str], str]] = {
    "text": lambda it, _: gpumem.report(it).text(90),
    "narrow text": lambda it, _: gpumem.report(it).text(40),
    "a comparison": lambda it, dirty: Comparison(it, it, dirty).text(90),
    "the lines of check": lambda it, dirty: "\n".join(_lines(checked(it, dirty))),
    "a file that was written": lambda _, dirty: files.wrote(dirty),
    "an error": lambda _, dirty: exits.error_text(exits.CommandError(f"no {dirty}\nhint: {dirty}")),
    "progress": lambda _, dirty: terminal.line(dirty),
    "a traceback": lambda _, dirty: terminal.lines(dirty.replace("\n", " ")),
}


@pytest.mark.parametrize("output", TEXTS.values(), ids=TEXTS.keys())
def test_no_text_leaves_its_line(
    recording: gpumem.types.Recording,
    dirty: str,
    output: Callable[[gpumem.types.Recording, str], str],
) -> None:
    check_lines(output(recording, dirty))


def test_markdown_has_no_elements_of_a_name(recording: gpumem.types.Recording) -> None:
    mistune = pytest.importorskip("mistune")
    parsed = mistune.create_markdown(renderer="ast", plugins=["table", "strikethrough"])
    content = issue._content(gpumem.report(recording), with_source=True)
    for text in (recording._report_markdown(), terminal.lines(issue._markdown(content))):
        check_lines(text)
        kinds = {token["type"] for token in tokens(parsed(text))}
        assert not kinds & {"image", "link", "inline_html", "block_html", "strikethrough"}, text
        headings = [it for it in parsed(text) if it["type"] == "heading"]
        assert not any(it["attrs"]["level"] == 1 for it in headings)
    table = next(it for it in parsed(recording._report_markdown()) if it["type"] == "table")
    rows = [row for part in table["children"][1:] for row in part["children"]]
    assert {len(row["children"]) for row in rows} == {5}


def tokens(parsed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all, those inside of others too."""
    return [inner for it in parsed for inner in (it, *tokens(it.get("children", [])))]


def test_no_field_of_a_spreadsheet_is_a_formula(recording: gpumem.types.Recording) -> None:
    text = recording._report_csv()
    check_lines(text, {"\n", "\r"})
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert {len(row) for row in rows} == {len(head)}
    for row in rows:
        for name in ("cell", "device", "status"):
            assert not row[head.index(name)].lstrip().startswith(("=", "+", "-", "@"))


def test_an_annotation_is_one_command(recording: gpumem.types.Recording, dirty: str) -> None:
    it = checked(recording, dirty)
    for violation in it.violations:
        object.__setattr__(violation, "cell", None)
    for command in github.commands(it):
        check_characters(command, set())
        assert command.startswith("::error file=")
        about, message = command.removeprefix("::error ").split("::", 1)
        assert re.fullmatch(r"file=[^,:]*,line=\d+,title=[^,:]*", about)
        assert "%0A::" not in message.replace("%250A::", "")


def test_results_of_tests_are_xml(recording: gpumem.types.Recording, dirty: str) -> None:
    document = junit.document([checked(recording, dirty)])
    check_characters(document.decode())
    root = ET.fromstring(document)  # noqa: S314 (our own)
    assert {it.tag for it in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
    }
    for it in root.iter():
        for value in it.attrib.values():
            check_characters(value, set())


def test_pages_and_tables_have_no_elements_of_a_name(
    recording: gpumem.types.Recording, tmp_path: Path, dirty: str
) -> None:
    report = gpumem.report(recording)
    check_html(report.findings._repr_html_(), PLAIN)
    check_html(Comparison(recording, recording, dirty)._repr_html_(), PLAIN)
    check_html(_table.table(("a",), [(dirty,)]), PLAIN)
    svg = tmp_path / "report.svg"
    report.save(svg)
    picture = svg.read_text(encoding="utf-8")
    check_characters(picture)
    ET.fromstring(picture)  # noqa: S314 (our own)
    page = tmp_path / "report.html"
    report.save(page)
    check_characters(page.read_text(encoding="utf-8").partition("<script")[0])


def strings(value: Any) -> list[str]:
    """Return the strings of a JSON value, except for a cell's code and the keys of things."""
    if isinstance(value, dict):
        kept = {name: it for name, it in value.items() if name not in {"fix", "id", "cell_id"}}
        return [text for it in kept.values() for text in strings(it)]
    if isinstance(value, list):
        return [text for it in value for text in strings(it)]
    return [value] if isinstance(value, str) else []


def test_data_has_clean_names(recording: gpumem.types.Recording) -> None:
    report = gpumem.report(recording)
    for content in (json.loads(report.to_json()), json.loads(recording._report_chrome_trace())):
        for text in strings(content):
            check_characters(text, BREAKS)
    for finding in report.findings:
        for text in (finding.title, finding.detail, *finding.path, *finding.suggestions):
            check_characters(text, set())
    for run in report.runs:
        check_characters(f"{run['label']}{run['cell']['label']}", set())


def test_the_log_is_one_line(dirty: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gpumem"):
        _gpumem._log(dirty)
    [message] = caplog.messages
    check_characters(message, set())


@pytest.mark.parametrize("command", [["report"], ["baseline", "x"], ["compare", "last"]])
def test_commands_refuse_such_a_path_on_its_line(
    dirty: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = f"{tmp_path}/{dirty}".replace("\0", "")
    assert main([*command, named]) == exits.WRONG
    check_lines(capsys.readouterr().err)


def nvidia_smi(dirty: str, folder: Path) -> Path:
    path = folder / "smi.csv"
    # It writes no line breaks inside of a field.
    dirty = dirty.replace("\r", " ").replace("\n", " ")
    rows = [
        [f"2024/01/17 12:34:{n:02}.000", "0", dirty, f"{100 * n} MiB", "40000 MiB"]
        for n in range(30)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", "index", "name", "memory.used [MiB]", "memory.total [MiB]"])
        writer.writerows(rows)
    return path


def stormlog(dirty: str, folder: Path) -> Path:
    path = folder / "events.json"
    events = [
        {
            "schema_version": 2,
            "timestamp_ns": (1_700_000_000 + n) * 10**9,
            "event_type": "sample",
            "collector": "stormlog.cuda_tracker",
            "pid": 41,
            "host": dirty,
            "device_id": 0,
            "allocator_allocated_bytes": n << 20,
            "allocator_reserved_bytes": n << 21,
            "device_used_bytes": n << 22,
            "device_total_bytes": 80_000 << 20,
            "context": dirty,
            "metadata": {"backend": "cuda"},
        }
        for n in range(30)
    ]
    path.write_text(json.dumps(events))
    return path


def torch_snapshot(dirty: str, folder: Path) -> Path:
    snapshot = snapshots.newest()

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: dirty if name in {"name", "filename"} else named(it)
                for name, it in value.items()
            }
        return [named(it) for it in value] if isinstance(value, list) else value

    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(named(snapshot)))
    return path


def profiler_trace(dirty: str, folder: Path) -> Path:
    def event(**fields: Any) -> dict[str, Any]:
        return {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 50, "args": {}, **fields}

    def memory(n: int) -> dict[str, Any]:
        figures = {"Total Allocated": n << 20, "Total Reserved": n << 21, "Bytes": 1 << 20}
        about = {"Device Type": 1, "Device Id": 0, "Addr": n}
        return event(name="[memory]", ph="i", ts=n, args={**about, **figures})

    events = [
        event(cat="cpu_op", name=dirty, ts=10 * n, dur=9, args={"External id": n})
        for n in range(20)
    ]
    events += [
        event(cat="user_annotation", name=f"{dirty}#{n}", ts=10 * n, dur=9) for n in range(9)
    ]
    events += [memory(n) for n in range(1, 200)]
    properties = [{"id": 0, "name": dirty, "totalGlobalMem": 80 << 30}]
    path = folder / "trace.json"
    path.write_text(json.dumps({"deviceProperties": properties, "traceEvents": events}))
    return path


FILES = [nvidia_smi, stormlog, torch_snapshot, profiler_trace]


@pytest.mark.parametrize("written", FILES)
def test_what_other_programs_wrote_stays_in_its_lines(
    dirty: str, tmp_path: Path, written: Callable[[str, Path], Path]
) -> None:
    path = written(dirty, tmp_path)
    found = gpumem.load(path)
    assert not isinstance(found, gpumem.types.Recording)
    for width in (40, 100):
        check_lines(found.text(width))
    if found._page_title is not None:
        shown = re.sub(r"(?s)<(script|style).*?</\1>", "", _file_page.html(found, path))
        assert "onerror" not in Tags(shown).found
        check_characters(html.unescape(re.sub(r"<[^>]*>", "", shown)))
