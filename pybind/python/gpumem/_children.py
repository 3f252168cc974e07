"""Living child processes: who they are, and their end, if the user confirms it."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass

from gpumem import _gpumem


@dataclass(frozen=True)
class LivingChild:
    """A living process that this one, or a child of it, began."""

    pid: int
    name: str
    """Its name in ``multiprocessing``, or else its program and script."""
    held_bytes: dict[str, int]
    """The bytes that it uses on each device; on the host without shared memory."""
    age_nanos: int
    execution_count: int | None
    """Jupyter's number of the run that began it."""
    handle: str
    """What leads to it in this process: ``unknown``, ``held``, ``lost``, ``detached``."""

    @property
    def is_led_to(self) -> bool:
        """Whether code has its object, and may still need it."""
        return self.handle == "held"


class LivingChildren:
    """The living children at one moment."""

    def __init__(self) -> None:
        """Look for them."""
        self._found = _gpumem.find_children()
        self.all = [LivingChild(**child) for child in self._found.children()]

    def text(self, width: int) -> str:
        """Return a table."""
        return self._found.text(width)

    def chosen(self, pids: list[int] | None) -> list[LivingChild]:
        """Return those of these process ids; for ``None`` those that no object leads to.

        Raises:
            ValueError: a number is that of no living child.
        """
        if pids is None:
            return [it for it in self.all if not it.is_led_to]
        known = {it.pid: it for it in self.all}
        strangers = [str(pid) for pid in pids if pid not in known]
        if strangers:
            problem = "is no living child" if len(strangers) == 1 else "are no living children"
            raise ValueError(f"{', '.join(strangers)} {problem} of this process")
        return [known[pid] for pid in dict.fromkeys(pids)]

    def end(self, children: list[LivingChild]) -> str:
        """End these, politely first; return what came of it."""
        ended = [child for child in children if self._found.end(child.pid)]
        alive = [str(child.pid) for child in children if child not in ended]
        _reap()
        words = f"ended {described(ended)}" if ended else "ended no process"
        return f"{words} · still alive: {', '.join(alive)}" if alive else words


def described(children: list[LivingChild]) -> str:
    """Return how many these are, and what they hold: ``8 processes that hold 640 MiB``."""
    n = len(children)
    held = [f"{_gpumem.bytes_text(size)}" + _on(it) for it, size in held_by(children).items()]
    noun, verb = ("process", "holds") if n == 1 else ("processes", "hold")
    return f"{n} {noun}" + (f" that {verb} {' and '.join(held)}" if held else "")


def held_by(children: list[LivingChild]) -> dict[str, int]:
    """Return what they hold together of each device."""
    held: dict[str, int] = {}
    for child in children:
        for label, n_bytes in child.held_bytes.items():
            held[label] = held.get(label, 0) + n_bytes
    return held


def _on(label: str) -> str:
    return "" if label == "host" else f" on {label}"


def _reap() -> None:
    """Wait for the processes that have ended."""
    with suppress(Exception):
        if "multiprocessing.process" in sys.modules:
            sys.modules["multiprocessing.process"].active_children()
    with suppress(Exception):
        if "subprocess" in sys.modules:
            sys.modules["subprocess"]._cleanup()
