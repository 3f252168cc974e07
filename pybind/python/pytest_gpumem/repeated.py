"""Calls a test's function several times, records each call, and judges what it kept."""

from __future__ import annotations

import functools
import gc
import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_gpumem.options import Options


def repeated(function: Callable[..., Any], name: str, asked: Options) -> Callable[..., Any]:
    """Return a function that calls another one several times and then judges."""
    if _gpumem._is_disabled():
        return function

    @functools.wraps(function)
    def calls(*args: Any, **kwargs: Any) -> None:
        series = Series(name, function.__module__)
        for _ in range(asked.runs):
            with gpumem.record(name):
                function(*args, **kwargs)
            series.read()
        series.judge(asked)

    @functools.wraps(function)
    async def awaits(*args: Any, **kwargs: Any) -> None:
        series = Series(name, function.__module__)
        for _ in range(asked.runs):
            with gpumem.record(name):
                await function(*args, **kwargs)
            series.read()
        series.judge(asked)

    return awaits if inspect.iscoroutinefunction(function) else calls


class Series:
    """What was held after each call."""

    def __init__(self, name: str, module: str) -> None:
        """Begin; ``name`` is the test's, in ``module``."""
        self._name = name
        self._prefix = f"{module}."
        self._n_runs_before = len(gpumem.report().runs)
        self._levels: dict[str, list[int]] = defaultdict(list)
        self._hosts: set[str] = set()
        self._held: dict[tuple[str, str], int] | None = None

    def read(self) -> None:
        """Note the levels now, without what waits for Python's garbage collector."""
        gc.collect()
        for label, is_host, allocated, _, used in _gpumem.device_levels():
            level = used if allocated is None else allocated
            if level is not None:
                self._levels[label].append(level)
            if is_host:
                self._hosts.add(label)
        if self._held is None:
            self._held = held()

    def judge(self, asked: Options) -> None:
        """Fail the test if it leaks or needs more than it may."""
        on_devices = self._levels.keys() - self._hosts
        judged = sorted(on_devices or self._levels)
        if asked.peak_bytes is not None:
            self._judge_peaks(judged, asked.peak_bytes)
        if asked.no_leak:
            for device in judged:
                self._judge_growth(device, asked.runs)

    def _judge_peaks(self, devices: list[str], limit: int) -> None:
        rows = gpumem.report().runs[self._n_runs_before :]
        for device in devices:
            own = (it for it in rows if it["device"] == device and it["label"] == self._name)
            peak = max((it["peak_bytes"] or 0 for it in own), default=0)
            if peak > limit:
                rose = f"{self._name} rises to {_gpumem.bytes_text(peak)} on {device}"
                most = f"at most {_gpumem.bytes_text(limit)} is accepted"
                pytest.fail(f"{rose} · {most}", pytrace=False)

    def _judge_growth(self, device: str, n_runs: int) -> None:
        levels = self._levels[device]
        if len(levels) < n_runs:
            return
        growth = gpumem.classify_growth(levels)
        if growth.state != "leak":
            return
        keeps = f"{self._name} keeps {_gpumem.bytes_text(growth.bytes_per_run)} a call"
        where = "" if device in self._hosts else f" on {device}"
        name = self._holder(device, growth.total_bytes)
        by = "" if name is None else f" · held by `{name}`"
        figures = " ".join(_gpumem.bytes_text(level) for level in levels)
        pytest.fail(f"{keeps}{where}{by}\nafter each call: {figures}", pytrace=False)

    def _holder(self, device: str, total_bytes: int) -> str | None:
        """Return the name whose memory grew, if it explains most of the growth."""
        before = self._held or {}
        grown = {
            name: n_bytes - before.get((label, name), 0)
            for (label, name), n_bytes in held().items()
            if label == device
        }
        most = max(grown, key=lambda name: grown[name], default=None)
        if most is None or 2 * grown[most] < total_bytes:
            return None
        return most.removeprefix(self._prefix)


def held() -> dict[tuple[str, str], int]:
    """Return the bytes that each name alone keeps on each device."""
    return {(it.device, it.name): it.n_bytes for it in gpumem.holders()}
