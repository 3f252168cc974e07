"""``pytest --gpumem``: which tests leave memory behind, and who holds it.

The levels are read after each test. Only where one rose is there a search for names, and at the end
another one: what a fixture let go of at its teardown, or a later test, was not left behind.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

from pytest_gpumem import kept
from pytest_gpumem.lines import fills, is_mentioned, line_of, module_text, patch, place
from pytest_gpumem.summary import LEFT, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpumem.types import Holder, Holders, SharedMemory
    from pytest import (  # noqa: PT013 (only for types)
        FixtureDef,
        Item,
        Session,
        TerminalReporter,
    )

LEAST = 1 << 20
"""A name, or an allocator's counter, that has fewer bytes more is not worth a line."""
LEAST_OF_HOST = 8 << 20
"""Smaller changes of a process's memory need no cause in its tests."""
SEARCH_SECONDS = 3.0
"""The most time for all searches together,"""
SEARCH_SHARE = 0.1
"""and this share of the suite's time."""
GARBAGE = "cyclic garbage"
"""Garbage that the next collection frees."""
OUTPUT = "gpumem"
"""The name under which a worker of xdist sends its results."""


@dataclass(frozen=True)
class SuiteRow:
    """The growth of a name in a test."""

    test: str
    device: str
    name: str
    kind: str
    """``left`` by a test, ``outlived`` a fixture; ``fixture`` or ``failed``: held for a while."""
    n_bytes: int
    path: str
    what: str
    line: str | None
    fix: list[str]
    """The change, as a patch."""


class Suite:
    """Watches the tests of this process."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._searched = 0.0
        self._n_skipped = 0
        self._n_tests = 0
        self._since: list[tuple[str, Any]] = []
        """The tests since the last search, and their functions."""
        self._trouble: str | None = None
        self._fixtures: list[FixtureDef[Any]] = []
        self._gone: list[tuple[str, int, FixtureDef[Any]]] = []
        """Fixtures that are gone since the last search, and what each held of a device."""
        self._at_first: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}
        self._base: dict[str, int] = {}
        """The level of each device at the last search, or the lowest one since."""
        self._before: dict[str, int] = {}
        self._found: Holders | None = None
        """By the search under way."""
        self._rows: list[SuiteRow] = []
        self._of_workers: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Stop watching after a failure of ours."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (the observer yields)
            self._trouble = f"{type(error).__name__}: {error}"

    @pytest.hookimpl(tryfirst=True, hookwrapper=True)
    def pytest_runtest_protocol(self, item: Item) -> Iterator[None]:
        """Read the levels after a test and the teardown of its fixtures."""
        if self._begun is None:
            with self._guarded():
                self._begin(item.session)
        yield
        if self._trouble is None:
            with self._guarded():
                self._after(item)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: FixtureDef[Any]) -> Iterator[None]:
        """Know the fixture until its teardown."""
        self._fixtures.append(fixturedef)
        yield

    def pytest_fixture_post_finalizer(self, fixturedef: FixtureDef[Any], request: Any) -> None:
        """Expect the levels to fall by what the fixture held."""
        del request
        with self._guarded():
            self._forget(fixturedef)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Session) -> None:
        """Search once more, when every fixture is gone."""
        if self._begun is not None and self._trouble is None:
            with self._guarded():
                self._finish(session)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = self._output()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of xdist found."""
        output = getattr(node, "workeroutput", {}).get(OUTPUT)
        if output is not None:
            self._of_workers.append(output)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Write it all down."""
        outputs = self._of_workers or [self._output()]
        rows = [SuiteRow(**row) for output in outputs for row in output["rows"]]
        troubles = {output["trouble"] for output in outputs if output["trouble"]}
        n_tests = sum(output["n_tests"] for output in outputs)
        n_skipped = sum(output["n_skipped"] for output in outputs)
        if not n_tests and not troubles:
            return
        terminalreporter.write_sep("=", "memory left behind")
        is_whole = terminalreporter.config.get_verbosity() > 0
        for line in summary(rows, n_tests, n_skipped, is_whole=is_whole):
            terminalreporter.write_line(line)
        for trouble in sorted(troubles):
            terminalreporter.write_line(f"gpumem stopped watching: {trouble}")

    def _output(self) -> dict[str, Any]:
        """Return what there is to say, in types that xdist can send."""
        return {
            "rows": [asdict(row) for row in self._rows],
            "n_tests": self._n_tests,
            "n_skipped": self._n_skipped,
            "trouble": self._trouble,
        }

    def _begin(self, session: Session) -> None:
        self._begun = time.monotonic()
        self._search(session, {})
        self._at_first = dict(self._held)
        self._rows.clear()
        self._before = levels()

    def _after(self, item: Item) -> None:
        self._n_tests += 1
        self._since.append((item.nodeid, function_of(item)))
        now, before = levels(), self._before
        self._before = now
        for device, level in now.items():
            self._base[device] = min(
                self._base.get(device, 0 if is_exact(device) else level), level
            )
        if not self._is_above(now):
            return
        elapsed = time.monotonic() - (self._begun or 0)
        if self._searched > SEARCH_SECONDS + SEARCH_SHARE * elapsed:
            self._n_skipped += 1
            return
        self._search(item.session, {it: now[it] - before.get(it, 0) for it in now})

    def _forget(self, fixture: FixtureDef[Any]) -> None:
        if fixture not in self._fixtures:
            return
        self._fixtures = [it for it in self._fixtures if it is not fixture]
        name = kept.fixture_name(fixture)
        for device in self._base:
            n_bytes = self._held.pop((device, name), 0)
            if n_bytes >= LEAST:
                self._base[device] -= n_bytes
                self._gone.append((device, n_bytes, fixture))

    def _finish(self, session: Session) -> None:
        if not self._rows and not self._is_above(levels()):
            return
        self._search(session, {})
        left = {key: n_bytes - self._at_first.get(key, 0) for key, n_bytes in self._held.items()}
        rows = []
        # What a test added and a later one took away again was not left: the latest has stayed.
        for row in reversed(self._rows):
            if row.kind in LEFT:
                key = (row.device, row.name)
                stayed = min(row.n_bytes, left.get(key, 0))
                left[key] = left.get(key, 0) - stayed
                if stayed >= LEAST:
                    rows.append(replace(row, n_bytes=stayed))
            else:
                rows.append(row)
        outlived = {row.test for row in rows if row.kind == "outlived"}
        self._rows = [it for it in rows if it.kind != "fixture" or it.name not in outlived]

    def _is_above(self, now: dict[str, int]) -> bool:
        return any(level - self._base.get(it, 0) >= least(it) for it, level in now.items())

    def _search(self, session: Session, own: dict[str, int]) -> None:
        """Search for names, and note which of them have more than at the last search.

        ``own`` is by how much the last test alone raised the level of each device.
        """
        begun = time.monotonic()
        with kept.listed(session, self._fixtures):
            found = self._found = gpumem.holders()
        fixtures = {kept.fixture_name(it): it for it in self._fixtures}
        now = levels()
        held: dict[tuple[str, str], int] = defaultdict(int)
        largest: dict[tuple[str, str], Holder | SharedMemory] = {}
        entries: list[Holder | SharedMemory] = [*found.roots, *found.shared]
        for holder in entries:
            name = name_of(holder, set(fixtures))
            if name in {GARBAGE, kept.FAILED}:
                # Neither outlives the next test, or the next collection.
                now[holder.device] = now.get(holder.device, 0) - holder.n_bytes
            if name is not None:
                held[holder.device, name] += holder.n_bytes
                largest.setdefault((holder.device, name), holder)
        grown = [(n_bytes - self._held.get(key, 0), key) for key, n_bytes in held.items()]
        for n_bytes, key in sorted(grown, reverse=True):
            device, name = key
            if n_bytes >= LEAST and name != GARBAGE:
                # Of a slow rise over several tests, the last one has a small part.
                is_own = 10 * n_bytes <= 11 * own.get(device, 0)
                fixture = fixtures.get(name)
                n_noted = n_bytes if fixture is None else held[key]
                self._note(largest[key], name, n_noted, fixture, is_own=is_own)
                own[device] = own.get(device, 0) - n_bytes
        self._held, self._base, self._found = held, now, None
        self._since.clear()
        self._gone.clear()
        self._searched += time.monotonic() - begun

    def _note(
        self,
        holder: Holder | SharedMemory,
        name: str,
        n_bytes: int,
        fixture: FixtureDef[Any] | None,
        *,
        is_own: bool,
    ) -> None:
        kind, line, fix = "left", None, None
        test, function = self._since[-1] if self._since else ("", None)
        same = (
            it for d, n, it in self._gone if d == holder.device and 9 * n < 10 * n_bytes < 11 * n
        )
        gone = next(same, None)
        if fixture is not None:
            kind, line = "fixture", place(fixture.func)
        elif name == kept.FAILED:
            kind, line = "failed", kept.failed_place(holder.path)
        elif gone is not None:
            kind, line, test = "outlived", place(gone.func), kept.fixture_name(gone)
        else:
            if not is_own:
                test, function = self._fillers(holder.path)
            line = line_of(holder.path, function)
            fix = self._found and self._found._fix(holder, [module_text(holder.path)])
            fix = fix if fix and fills(fix[0], holder.path, function) else None
        path, what = holder.path, holder.what
        lines = [] if fix is None else patch(*fix)
        row = SuiteRow(test, holder.device, name, kind, n_bytes, path, what, line, lines)
        self._rows.append(row)

    def _fillers(self, path: str) -> tuple[str, Any]:
        """Return which of the tests since the last search fill a name, and one's function."""
        tests = [it for it in self._since if is_mentioned(path, it[1])] or self._since
        if not tests:
            return "no test", None
        (first, function), (last, _) = tests[0], tests[-1]
        if first == last:
            return first, function
        name, _, _ = first.partition("[")
        is_one = name == last.partition("[")[0]
        return f"{name}[…]" if is_one else f"{first} … {last}", function


def function_of(item: Item) -> Any:
    """Return a test's function, of a class not as a method: that would keep its instance."""
    around = getattr(item.parent, "obj", None)
    return getattr(around, getattr(item, "originalname", None) or "", None)


def levels() -> dict[str, int]:
    """Return what tests hold of each device: what its allocator handed out; of the host, all."""
    found = {}
    for label, is_host, allocated, _, used in _gpumem.device_levels():
        level = used if is_host else allocated
        if level is not None:
            found[label] = level
    return found


def is_exact(device: str) -> bool:
    """Whether the level of a device is an allocator's counter."""
    return device != "host"


def least(device: str) -> int:
    """Return by how much a level rises at least that is worth a search."""
    return LEAST if is_exact(device) else LEAST_OF_HOST


def name_of(holder: Holder | SharedMemory, fixtures: set[str]) -> str | None:
    """Return the name that is counted; nothing for what libraries keep for themselves.

    A fixture that shares with other names holds what they share until its teardown.
    """
    if isinstance(holder, gpumem.types.SharedMemory):
        names = [it for it in holder.names if not is_librarys(it)]
        of_fixtures = (it for it in names if it in fixtures)
        return next(of_fixtures, None) or next(iter(names), None)
    is_unknown = holder.kind == "unnamed" and not is_exact(holder.device)
    return None if holder.kind == "system" or is_unknown else holder.name


def is_librarys(name: str) -> bool:
    """Whether a name stands for a library's module."""
    return name in sys.modules or name.endswith("torch.compile")
