"""Calls a test's function several times, records each call, and judges what it kept."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import linecache
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

from pytest_gpumem.lines import line_of, patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_gpumem.options import Options

LEAST = 1 << 20
"""A name that grew by less than this after all calls is not reported."""


def repeated(function: Callable[..., Any], name: str, options: Options) -> Callable[..., Any]:
    """Return a function that calls ``function`` several times and then checks its memory."""
    if _gpumem._is_disabled():
        return function

    file = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "")

    @functools.wraps(function)
    def calls(*args: Any, **kwargs: Any) -> None:
        series = Series(name, function, options)
        for _ in range(options.runs):
            with _gpumem._block_of(name, file):
                function(*args, **kwargs)
            series.read()
        series.judge(file)

    @functools.wraps(function)
    async def awaits(*args: Any, **kwargs: Any) -> None:
        series = Series(name, function, options)
        for _ in range(options.runs):
            with _gpumem._block_of(name, file):
                await function(*args, **kwargs)
            series.read()
        series.judge(file)

    return awaits if inspect.iscoroutinefunction(function) else calls


class Series:
    """Levels after each call."""

    def __init__(self, name: str, function: Callable[..., Any], options: Options) -> None:
        """Begin the series of the test ``name``."""
        self._name = name
        self._function = function
        self._prefix = f"{function.__module__}."
        self._options = options
        self._n_runs_before = len(gpumem.report().runs)
        self._n_calls = 0
        self._levels: dict[str, list[int]] = defaultdict(list)
        self._hosts: set[str] = set()
        # Host memory that the process used before the test does not count.
        self._at_start = {
            label: used or 0 for label, is_host, _, _, used in _gpumem.device_levels() if is_host
        }
        self._resident_at_start, self._most_resident = resident()
        self._rise_of_host = 0
        self._held: dict[int, dict[tuple[str, str], int]] = {}

    def read(self) -> None:
        """Note the levels now, without what waits for Python's garbage collector."""
        _, most = resident()
        if most > self._most_resident:
            self._rise_of_host = most - self._resident_at_start
        gc.collect()
        self._n_calls += 1
        for label, is_host, allocated, _, used in _gpumem.device_levels():
            level = used if allocated is None else allocated
            if level is not None:
                self._levels[label].append(level)
            if is_host:
                self._hosts.add(label)
        if self._options.no_leak and self._n_calls in {1, (1 + self._options.runs) // 2}:
            self._held[self._n_calls] = bytes_by_name()
        # What reading took is no peak of the test's.
        _, self._most_resident = resident()

    def judge(self, file: str) -> None:
        """Fail the test, whose code is in ``file``, if it leaks or needs more than it may."""
        on_devices = self._levels.keys() - self._hosts
        judged = sorted(on_devices or self._levels)
        if self._options.peak_bytes is not None:
            self._judge_peaks(judged, self._options.peak_bytes)
        if self._options.no_leak:
            self._held[self._n_calls] = bytes_by_name()
            for device in judged:
                self._judge_growth(device, file)

    def _judge_peaks(self, devices: list[str], limit: int) -> None:
        rows = gpumem.report().runs[self._n_runs_before :]
        for device in devices:
            own = (it for it in rows if it["device"] == device and it["label"] == self._name)
            start = self._at_start.get(device, 0)
            peak = max((it["peak_bytes"] or 0 for it in own), default=0) - start
            if device in self._hosts:
                peak = max(peak, self._rise_of_host)
            if peak > limit:
                by = "by" if start else "to"
                rose = f"{self._name} rises {by} {_gpumem.bytes_text(peak)} on {device}"
                most = f"at most {_gpumem.bytes_text(limit)} is accepted"
                pytest.fail(f"{rose} · {most}", pytrace=False)

    def _judge_growth(self, device: str, file: str) -> None:
        levels = self._levels[device]
        if len(levels) < self._options.runs:
            return
        growth = gpumem.classify_growth(levels)
        name, a_call = self._collector(device)
        if growth.state == "leak":
            if 2 * a_call * (self._n_calls - 1) < growth.total_bytes:
                name = None
            a_call = growth.bytes_per_run
        elif name is None:
            return
        keeps = f"{self._name} keeps {_gpumem.bytes_text(a_call)} a call"
        where = "" if device in self._hosts else f" on {device}"
        by = "" if name is None else f" · held by `{name.removeprefix(self._prefix)}`"
        lines = [] if name is None else self._cure(device, name, file)
        figures = " ".join(_gpumem.bytes_text(level) for level in levels)
        text = "\n".join([f"{keeps}{where}{by}", *lines, f"after each call: {figures}"])
        pytest.fail(text, pytrace=False)

    def _collector(self, device: str) -> tuple[str | None, int]:
        """Return the name that has most more with every call, and how many bytes a call.

        It has more after the middle call than after the first, and more again after the last.
        """
        (first, before), (middle, between), (last, after) = self._held.items()
        found: dict[str, int] = {}
        for (label, name), n_bytes in after.items():
            then, since = before.get((label, name), 0), between.get((label, name), 0)
            rises = ((since - then) / (middle - first), (n_bytes - since) / (last - middle))
            a_call = (n_bytes - then) // (last - first)
            if label == device and n_bytes - then >= LEAST and 2 * min(rises) >= a_call:
                found[name] = a_call
        if not found:
            return None, 0
        name = max(found, key=lambda it: found[it])
        return name, found[name]

    def _cure(self, device: str, name: str, file: str) -> list[str]:
        """Return where in ``name`` it is, and the line to change."""
        holders = [it for it in gpumem.holders() if (it.device, it.name) == (device, name)]
        where = [f"{it.path.removeprefix(self._prefix)} · {it.what}" for it in holders if it.path]
        fixes = (
            it.fix
            for it in gpumem.report().findings
            if it.device == device and it.cell and it.cell.label == self._name
        )
        fix = next(filter(None, fixes), None)
        if fix is None or fix.before is None:
            paths = (it.path for it in holders if it.path)
            lines = (line_of(path, self._function) for path in paths)
            return [*where, *filter(None, lines)]
        first, *_ = fix.before.splitlines()
        texts = enumerate(linecache.getlines(file), 1)
        number = next((n for n, text in texts if text.strip().startswith(first.strip())), None)
        place = [] if number is None else [f"{Path(file).name}:{number}"]
        return [*where, *place, *patch(fix.before, fix.after)]


def resident() -> tuple[int, int]:
    """Return the bytes of this process that are resident now, and the most that ever were.

    The kernel counts them, so that no peak is too short for it. Zeros where it does not tell.
    """
    with contextlib.suppress(OSError, LookupError, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        kib = {key: text.split() for key, _, text in (it.partition(":") for it in lines)}
        now, most = (int(kib[key][0]) << 10 for key in ("VmRSS", "VmHWM"))
        return now, most
    return 0, 0


def bytes_by_name() -> dict[tuple[str, str], int]:
    """Return the bytes that each name alone keeps on each device."""
    return {(it.device, it.name): it.n_bytes for it in gpumem.holders()}
