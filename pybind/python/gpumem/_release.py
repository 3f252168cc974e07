"""Free memory if the user asks for it, and report how much each step freed."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gpumem import _gpumem, sim
from gpumem._children import LivingChildren, described
from gpumem._retention import Errors, Outputs, Variable
from gpumem._table import NOTEBOOK_WIDTH, TextResult, escaped, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

STEPS = ("traceback", "outputs", "cycles", "cache")
CHILDREN = "children"
# Smaller changes of a host process are noise.
HOST_NOISE = 1 << 20
# Attribute lookups of modules that run no code.
PLAIN = (ModuleType.__getattribute__, object.__getattribute__)


@dataclass(frozen=True)
class ReleaseStep:
    """One step of a release: what it did or would do, and the bytes it freed on each device."""

    name: str
    words: str
    freed: dict[str, int] = field(default_factory=dict)
    outlived: str = ""
    """For a variable: what still keeps its memory, or why nothing was freed."""

    def __str__(self) -> str:
        """Return one line, and two more if something else keeps what a variable held."""
        back = [f"{_gpumem.bytes_text(n)} back on {device}" for device, n in self.freed.items()]
        kept, *below = self.outlived.splitlines() or [""]
        if kept.startswith("○"):
            kept, below = "" if back else "nothing came back", [kept, *below]
        parts = [f"{self.name:<9}  {self.words}", *back, *([kept] if kept else [])]
        return "\n".join([_gpumem._printable(" · ".join(parts)), *below])


@dataclass(frozen=True)
class Released(TextResult):
    """The steps of a release."""

    steps: tuple[ReleaseStep, ...]
    dry_run: bool
    hint: str = ""

    @property
    def freed(self) -> dict[str, int]:
        """The bytes freed on each device: what tensors held, and what the cache gave back."""
        total: dict[str, int] = {}
        for step in self.steps:
            for device, n_bytes in step.freed.items():
                total[device] = total.get(device, 0) + n_bytes
        return total

    def text(self) -> str:
        """Return a line for each step."""
        lines = [str(step) for step in self.steps]
        return "\n".join([*lines, self.hint] if self.hint else lines)

    def __repr__(self) -> str:
        """Return the number of steps, and the bytes freed on each device."""
        n = len(self.steps)
        steps = "1 step" if n == 1 else f"{n} steps"
        verb = "to try" if self.dry_run else "taken"
        freed = _freed_text(self.freed)
        return f"<Released: {steps} {verb}{', ' if freed else ''}{freed}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a row for each step."""
        rows = [
            (step.name, step.words, _freed_text(step.freed), step.outlived) for step in self.steps
        ]
        note = f"<p>{escaped(self.hint)}</p>" if self.hint else ""
        return table(("step", "what it does", "freed", "still held"), rows) + note


def _freed_text(freed: dict[str, int]) -> str:
    return ", ".join(f"{_gpumem.bytes_text(n)} on {device}" for device, n in freed.items())


def release(*what: str, dry_run: bool = False, end: bool | list[int] = False) -> Released:
    """Free memory: ``traceback``, ``outputs``, ``cycles``, ``cache``, ``all``, or a name.

    - ``traceback``: the frames of the last error, of its causes, and of the debugger.
    - ``outputs``: ``Out``, ``_`` and every hidden copy of a result.
    - ``cycles``: a garbage collection.
    - ``cache``: unused memory in the allocators of PyTorch, CuPy and ``gpumem.sim``.
    - a name: the variable, under all its names.
    - ``children``: living processes that this one began. ``all`` leaves them alone. ``end=[pid]``
      ends those, ``end=True`` those to which no variable leads.

    With ``dry_run``, or without arguments, it only returns what each step would do.

    Raises:
        ValueError: there is no variable of that name, or no child of that process id.
    """
    shell = _shell()
    wanted = _unfolded(what)
    if CHILDREN in wanted:
        others = [name for name in wanted if name != CHILDREN]
        released = release(*others, dry_run=dry_run) if others else Released((), dry_run)
        step, hint = _children_step(LivingChildren(), end=end, dry_run=dry_run)
        return Released((*released.steps, step), dry_run, hint or released.hint)
    plans = [_plan(name, shell) for name in wanted]
    if dry_run or not what:
        hint = "" if what else "nothing is released yet: `%gpumem release all`, or one of these"
        steps = tuple(ReleaseStep(plan.name, plan.would()) for plan in plans)
        if not what and (children := LivingChildren()).all:
            steps += (_children_step(children, end=False, dry_run=True)[0],)
        return Released(steps, dry_run=True, hint=hint)
    steps = tuple(_taken(plan) for plan in plans)
    return Released(steps, dry_run=False, hint=_cache_hint(wanted))


def _children_step(
    children: LivingChildren, *, end: bool | list[int], dry_run: bool
) -> tuple[ReleaseStep, str]:
    """End the children that ``end`` names; the step, and what to do next."""
    chosen = children.chosen(None if end is True else end or [])
    if not children.all:
        return ReleaseStep(CHILDREN, "no child process lives"), ""
    if not chosen:
        pids = [it.pid for it in children.all]
        hint = f'nothing is ended yet: `gpumem.release("children", end={pids})`'
        return ReleaseStep(CHILDREN, f"would ask to end {described(children.all)}"), hint
    if dry_run:
        return ReleaseStep(CHILDREN, f"would end {described(chosen)}"), ""
    return ReleaseStep(CHILDREN, children.end(chosen)), ""


class Plan(NamedTuple):
    """A step that has not run yet."""

    name: str
    verb: str
    # Its object; empty if there is nothing to do.
    about: str
    nothing: str
    act: Callable[[], object]
    # The level that shows what it freed.
    level: str = "allocated"
    # The variables that it deletes.
    names: tuple[str, ...] = ()

    def would(self) -> str:
        """Describe what the step would do."""
        return f"would {self.verb} {self.about}" if self.about else self.nothing

    def did(self) -> str:
        """Describe what the step did."""
        past = {"forget": "forgot", "collect": "collected", "empty": "emptied", "delete": "deleted"}
        return f"{past[self.verb]} {self.about}" if self.about else self.nothing


def _plan(name: str, shell: InteractiveShell | None) -> Plan:
    match name:
        case "traceback":
            errors = Errors(shell)
            return Plan(name, "forget", errors.description(), "no error is kept", errors.forget)
        case "outputs":
            outputs = Outputs(shell)
            return Plan(name, "forget", outputs.description(), "no output is kept", outputs.forget)
        case "cycles":
            return Plan(name, "collect", "what only refers to itself", "", gc.collect)
        case "cache":
            caches = _caches()
            about = f"the cache of {', '.join(caches)}" if caches else ""
            nothing = "no framework that runs has a cache to empty"
            return Plan(name, "empty", about, nothing, lambda: _empty(caches), "reserved")
        case _:
            problem = "there is no IPython shell with variables"
            variable = Variable(shell, name) if shell is not None else None
            if variable is not None:
                problem = variable.problem()
            if variable is None or problem:
                steps = ", ".join((*STEPS, "all"))
                raise ValueError(f"{problem}: release {steps}, or a variable")
            about, names = variable.description(), tuple(variable.names())
            return Plan(name, "delete", about, "", variable.forget, names=names)


def _taken(plan: Plan) -> ReleaseStep:
    """Run a step and measure it."""
    watched = _gpumem.LettingGo(list(plan.names)) if plan.names else None
    before = _levels()
    words = plan.did()
    plan.act()
    freed: dict[str, int] = {}
    for device, now in _levels().items():
        then = before.get(device)
        if then is None:
            continue
        n_bytes = _fallen(then, now, plan.level)
        if n_bytes >= (HOST_NOISE if now.is_host else 1):
            freed[device] = n_bytes
    outlived = _outlived(watched, freed) if watched is not None else ""
    return ReleaseStep(plan.name, words, freed, outlived)


def _outlived(watched: _gpumem.LettingGo, freed: dict[str, int]) -> str:
    """Return who keeps what a variable held, or why nothing came back."""
    outlived = watched.outlived(NOTEBOOK_WIDTH)
    if outlived or freed:
        return outlived or ""
    if outlived is None:
        return "it held nothing of a device"
    return "nothing came back: another name has it, or the next collection frees it"


class Levels(NamedTuple):
    """A device's levels: in tensors, in the allocators' segments, in this process."""

    is_host: bool
    allocated: int | None
    reserved: int | None
    used: int | None


def _levels() -> dict[str, Levels]:
    return {levels[0]: Levels(*levels[1:]) for levels in _gpumem.device_levels()}


def _fallen(then: Levels, now: Levels, level: str) -> int:
    """Return the fall of the level, or of the process's use if the level is unknown."""
    for name in (level, "used"):
        before, after = getattr(then, name), getattr(now, name)
        if before is not None and after is not None:
            return int(max(0, before - after))
    return 0


def _caches() -> dict[str, Callable[[], Any]]:
    """Return a function that empties the cache, for each framework that already runs."""
    caches: dict[str, Callable[[], Any]] = {}
    devices = _levels()
    torch = _loaded("torch")
    for kind in ("cuda", "xpu", "mtia"):
        with suppress(Exception):
            backend = getattr(torch, kind, None)
            if backend is not None and backend.is_initialized():
                caches[f"torch.{kind}"] = backend.empty_cache
    if torch is not None and any(label.startswith("mps:") for label in devices):
        caches["torch.mps"] = torch.mps.empty_cache
    reads = {source: used for source, used, _ in _gpumem.source_states()}
    cupy = _loaded("cupy")
    if cupy is not None and reads.get("cupy"):
        caches["cupy"] = cupy.get_default_memory_pool().free_all_blocks
        caches["cupy's pinned pool"] = cupy.get_default_pinned_memory_pool().free_all_blocks
    if any(label.startswith("sim:") for label in devices):
        caches["sim"] = sim.empty_cache
    return caches


def _loaded(name: str) -> Any:  # noqa: ANN401 (a module, or None)
    """Return a loaded module; a lazy one that is not imported yet does not count."""
    module = sys.modules.get(name)
    looks_up = type(module).__getattribute__
    return module if looks_up in PLAIN else None


def _empty(caches: dict[str, Callable[[], Any]]) -> None:
    for empty in caches.values():
        empty()


def _cache_hint(wanted: list[str]) -> str:
    """If much memory is in the cache now, return how to return it to the device."""
    if "cache" in wanted:
        return ""
    cached = {
        label: levels.reserved - levels.allocated
        for label, levels in _levels().items()
        if not levels.is_host and levels.reserved is not None and levels.allocated is not None
    }
    large = [
        f"{_gpumem.bytes_text(n_bytes)} of {label}"
        for label, n_bytes in cached.items()
        if n_bytes >= 64 * HOST_NOISE
    ]
    if not large:
        return ""
    return f"now in the allocator's cache: {', '.join(large)} · `%gpumem release cache`"


def _unfolded(what: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for name in what or ("all",):
        names += [name] if name != "all" else STEPS
    return list(dict.fromkeys(names))


def _shell() -> InteractiveShell | None:
    """Return the running shell, if there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
