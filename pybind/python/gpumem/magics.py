"""The magics: they parse and delegate.

``%%gpumem`` is a registered cell magic only for its help, for completion and to
refuse wrong options. A valid line never reaches it: a cleanup transformer blanks
the line, the body runs as an ordinary cell, and the options are parsed again when
the cell begins.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import (
    classic_prompt,
    ipython_prompt,
    leading_empty_lines,
    leading_indent,
)
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, kwds, magic_arguments

from gpumem import _gpumem, _report_magic
from gpumem._children import LivingChildren, described
from gpumem._commands import commands_text
from gpumem._gpu_processes import who
from gpumem._holders import Holders, holders
from gpumem._magic_arguments import interval_text, listed, parsed, refusal, unquoted
from gpumem._release import CHILDREN, release
from gpumem._report import below
from gpumem._sessions import SHOWN
from gpumem._settings import DEFAULT_INTERVAL, GpuMem
from gpumem._snapshot import snapshot
from gpumem._suggest import did_you_mean
from gpumem._table import NOTEBOOK_WIDTH
from gpumem._verdicts import set_baseline

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.interactiveshell import InteractiveShell


CELL_MAGIC = "%%gpumem"

# Actions of `%gpumem`.
ACTIONS = [
    *("on", "off", "status", "reset", "use", "baseline", "release", "expect"),
    *("holders", "why", "who", "sessions", "report", "snapshot"),
]

CONTROL_HELP = f"""Control the recording, or show what each device holds now.

{commands_text()}

`%gpumem report` is `%gpumem_report`. `gpumem.report()` and other functions return objects.
"""

# Actions of `%gpumem` that take names.
TAKE_NAMES = {"use", "baseline", "release", "expect", "holders", "why", "snapshot"}

# Actions of `%gpumem` that work in a process forked from the one that records.
ANSWERED_BY_FORKS = {"release", "holders", "why", "who"}

OFF = "gpumem is off: the environment variable GPUMEM_DISABLE is set"

FORKED = "nothing is recorded or read here: this process was forked from the one that records"

# Options of `%gpumem` that only some actions take: the actions, and their names in a message.
BELONG = {
    "interval": ({"on"}, "on, or to %%gpumem"),
    "device": ({"holders", "why"}, "why, or to %%gpumem"),
    "depth": ({"holders", "why"}, "why"),
    "dry_run": ({"release"}, "release"),
    "off": ({"expect"}, "expect"),
    "all": ({"sessions"}, "sessions"),
}


@dataclass(frozen=True)
class CellOptions:
    """The options of one ``%%gpumem`` line."""

    label: str | None
    devices: list[str]
    sources: list[str]
    reset_peak: bool
    interval: str | None
    trace: bool
    trace_file: str | None
    quiet: bool
    holders: bool | None


def cell_options(cell: str) -> CellOptions | None:
    """Return the options of a cell's ``%%gpumem`` line, if it has a valid one.

    The line may follow other cell magics, such as ``%%time``.
    """
    for line in cell.splitlines():
        text = line.strip()
        if _is_ours(text):
            return _options_if_right(text)
        if text and not text.startswith("%%"):
            return None
    return None


def blank_cell_magic(lines: list[str]) -> list[str]:
    """Blank a leading ``%%gpumem`` line; a cleanup transformer, without side effects.

    Line numbers do not change, unless another cell magic follows: IPython expects
    that one in the first line, and the ``%%gpumem`` line is removed. The registered
    magic refuses an invalid line.
    """
    if not lines or not _is_ours(lines[0].rstrip()):
        return lines
    if _options_if_right(lines[0].rstrip()) is None:
        return lines
    body = leading_empty_lines(lines[1:])
    # IPython cleaned the whole cell; the body alone may be indented.
    for clean in (leading_indent, classic_prompt, ipython_prompt):
        body = clean(body)
    if body and body[0].startswith("%%"):
        return blank_cell_magic(body)
    return ["\n"] * (len(lines) - len(body)) + body


# A terminal runs the transformers without side effects to check whether a cell is complete.
# A blanked `%%gpumem` line would be: Enter after it would run it without a body.
blank_cell_magic.has_side_effects = True  # type: ignore[attr-defined]


@magics_class
class GpuMemMagics(Magics):
    """``%gpumem``, ``%%gpumem`` and ``%gpumem_report``."""

    def __init__(
        self, shell: InteractiveShell, extension: _gpumem.Extension, settings: GpuMem
    ) -> None:
        super().__init__(shell=shell)
        self._extension = extension
        self._settings = settings

    @magic_arguments(name="%gpumem")
    @argument(
        "-l",
        "--label",
        type=unquoted,
        help="a name for the run, shown instead of the line that keeps most",
    )
    @argument(
        "--device",
        "--devices",
        dest="devices",
        metavar="DEVICE",
        action="append",
        help="read only this device, such as `cuda:0`; separate several with commas",
    )
    @argument(
        "--source",
        "--sources",
        dest="sources",
        metavar="SOURCE",
        action="append",
        help="read only this source, such as `torch`; separate several with commas",
    )
    @argument(
        "--reset-peak",
        action="store_true",
        help="reset the frameworks' peak counters first, which makes the run's peak exact",
    )
    @argument(
        "--interval",
        metavar="TIME",
        type=interval_text,
        help="""minimum time between samples, such as 10ms (1ms to 1s, default 1ms); long runs
        use longer intervals""",
    )
    @argument(
        "--trace",
        metavar="FILE",
        nargs="?",
        const="",
        type=unquoted,
        help="""read the history of torch's CUDA allocator (or of the simulated device) in this
        run: exact levels, exact peak, bytes by line of the cell, and a run for each label of
        `torch.profiler.record_function`; host memory has no such history. FILE: also save
        torch's own snapshot, for its viewer""",
    )
    @argument("-q", "--quiet", action="store_true", help="record without printing a line")
    @argument(
        "--holders",
        action="store_true",
        default=None,
        help="search for the names that hold memory if the cell leaves more than it found",
    )
    @argument("--no-holders", dest="holders", action="store_false", help="do not search for them")
    @cell_magic("gpumem")
    def record(self, line: str, cell: str) -> None:
        """Record this cell's memory on every device, and print what it kept.

        The cell runs as if this line were blank.
        """
        # A valid line gets here only through `run_cell_magic`, or if somebody removed the
        # transformer from the shell: then the line would come back here for ever.
        _parsed_cell_line(line)
        is_blanked = blank_cell_magic in self.shell.input_transformers_cleanup
        body = f"{CELL_MAGIC} {line}\n{cell}" if is_blanked else cell
        self.shell.run_cell(body).raise_error()

    @magic_arguments(name="gpumem")
    @kwds(description=CONTROL_HELP)
    @argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        metavar="ACTION",
        help="""on, off, why (or holders), who, status, baseline, expect, release, report: see
        above; reset: forget all runs; use: read only these sources; sessions: list those kept on
        the disk; snapshot: write PyTorch's memory snapshot, each block with the path that holds
        it""",
    )
    @argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="""for use: sources such as torch or sim, separated by commas or blanks, or auto for
        every source that answers; for baseline: its name; for expect: names or
        paths whose growth you mean, such as `trainer.logs`; for release: traceback (of the last
        error), outputs, cycles (a garbage collection), cache (of the frameworks), all, children
        (processes that live on: it asks before it ends one), or a variable's name; for holders
        and why: the only variable to show; for snapshot: the file""",
    )
    @argument("--device", metavar="DEVICE", help="why: only this device, such as `cuda:0`")
    @argument(
        "--depth",
        metavar="N",
        type=int,
        help="why: levels to show below each name (default 1)",
    )
    @argument(
        "--interval",
        metavar="TIME",
        type=interval_text,
        help="on: minimum time between samples, such as 10ms (1ms to 1s)",
    )
    @argument("--dry-run", action="store_true", help="release: preview what would be freed")
    @argument("--off", action="store_true", help="expect: report the growth of these names again")
    @argument("--all", action="store_true", help=f"sessions: not only the latest {SHOWN}")
    @line_magic("gpumem")
    def control(self, line: str) -> None:
        """Control the recording, or show what each device holds now."""
        action, _, rest = line.strip().partition(" ")
        if action == "report":
            self.show_report(rest)
            return
        options = parsed(GpuMemMagics.control, "%gpumem", line)
        _refuse_strays(options)
        if _gpumem._is_disabled():
            answer = OFF
        elif not _gpumem._is_owner() and options.action not in ANSWERED_BY_FORKS:
            answer = FORKED
        elif options.action == "snapshot":
            answer = self._snapshot(options.names)
        elif options.action == "expect":
            answer = _expect(options.names, off=options.off)
        else:
            answer = self._answer(options)
        self._extension.show(answer)

    @magic_arguments(name="gpumem_report")
    @argument(
        "named",
        metavar="FILE|SESSION",
        nargs="?",
        type=unquoted,
        help="""the report of a file (a recording, or what another program wrote), a baseline, or a
        session that is kept: `last`, or an id from `%%gpumem sessions`""",
    )
    @argument("--text", action="store_true", help="print plain text")
    @argument("--html", metavar="FILE", type=unquoted, help="write one self-contained file")
    @argument(
        "--compare",
        metavar="NAME",
        type=unquoted,
        help="""compare with a baseline: the runs since `%%gpumem baseline NAME` with those before
        it, or with those of another session; or with a file or a session""",
    )
    @argument(
        "--session",
        metavar="ID",
        type=unquoted,
        help="the same as its name alone, even if a file has that name",
    )
    @argument(
        "--processes",
        action="store_true",
        help="show the session's child processes side by side instead",
    )
    @line_magic("gpumem_report")
    def show_report(self, line: str) -> None:
        """Show which cells grew memory, whether they leak, and every run."""
        options = parsed(GpuMemMagics.show_report, "%gpumem_report", line)
        if _gpumem._is_disabled():
            self._extension.show(OFF)
            return
        _report_magic.show(options, self._extension.show)

    def _answer(self, options: Namespace) -> str:
        match options.action:
            case "on" | "off":
                answer = self._record(options)
            case "reset":
                counts = _gpumem.recording()._counts()
                _gpumem.reset()
                self._extension.resume()
                answer = f"forgot {counts}"
            case "use":
                answer = self._use(listed(options.names))
            case "holders" | "why":
                answer = self._holders(options)
            case "release":
                answer = self._release(options)
            case "baseline":
                answer = self._baseline(" ".join(options.names))
            case "status":
                answer = self._status()
            case "who":
                answer = who().text(NOTEBOOK_WIDTH)
            case "sessions":
                n_shown = sys.maxsize if options.all else SHOWN
                answer = _gpumem._sessions_text(n_shown, NOTEBOOK_WIDTH)
            case _:
                answer = below(self._extension.stopped, _gpumem.levels_text())
        return answer

    def _record(self, options: Namespace) -> str:
        if options.interval is not None:
            self._settings.interval = options.interval
        self._settings.record_all = options.action == "on"
        _gpumem.record_blocks(options.action == "on")
        self._extension.resume()
        return f"{self._recorded()}{self._prints()}"

    def _prints(self) -> str:
        """Return what `on` prints and when; nothing after `off`."""
        if not self._settings.record_all:
            return ""
        if self._settings.quiet:
            return "\nno line appears below them (`GpuMem.quiet` is True): see %gpumem_report"
        accelerators = [label for label, is_host, *_ in _gpumem.device_levels() if not is_host]
        counted = ", ".join(accelerators) or "host memory"
        when = f"a line appears if a cell keeps or frees 1 % of {counted}, or with a new finding"
        why = "no GPU is seen yet, so host memory counts (`%gpumem status` says why)"
        return f"\n{when}" if accelerators else f"\n{when}\n{why}"

    def _holders(self, options: Namespace) -> str:
        if len(options.names) > 1:
            given = " ".join(options.names)
            raise refusal("%gpumem", f"{options.action} takes one name, not {given!r}")
        name = options.names[0] if options.names else None
        try:
            found = holders(depth=1 if options.depth is None else options.depth)
        except ValueError as error:
            raise refusal("%gpumem", f"--{error}") from None
        if options.device is not None:
            known = dict.fromkeys([*_gpumem.device_labels(), *found.composition])
            _check("%gpumem", "device", [options.device], list(known))
        if name is not None:
            gone = self._gone(name)
            if gone:
                return gone
            self._check_name(options.action, name, found)
        return found.text(name, options.device, NOTEBOOK_WIDTH)

    def _gone(self, name: str) -> str:
        """Return who keeps what a variable held that is gone; nothing if no look has met it."""
        if self.shell.user_ns.get(name) is not None:
            return ""
        outlived = _gpumem.outlived(name, NOTEBOOK_WIDTH)
        if outlived is None:
            return ""
        freed = "is freed, has another name, or waits for the garbage collector"
        return outlived or _gpumem._printable(f"{name} is gone, and what it held {freed}")

    def _check_name(self, action: str, name: str, found: Holders) -> None:
        """Refuse a name that neither holds memory nor exists."""
        holding = {root.name for root in found.roots}
        holding.update(shared for entry in found.shared for shared in entry.names)
        variables = self.shell.user_ns
        if name in holding or name in variables:
            return
        variable = re.split(r"[.\[]", name, maxsplit=1)[0]
        if variable != name and variable in variables:
            reason = f"{action} takes a variable, not a path: write {action} {variable}"
            raise refusal("%gpumem", reason)
        hidden = self.shell.user_ns_hidden
        typed = [it for it in variables if it not in hidden]
        hint = did_you_mean(name, [*holding, *typed])
        raise refusal("%gpumem", f"{action}: no name {name!r} is known{hint}")

    def _release(self, options: Namespace) -> str:
        names = listed(options.names)
        try:
            if names and names[0] == CHILDREN and not options.dry_run:
                return self._release_children(names[1:])
            return str(release(*names, dry_run=options.dry_run))
        except ValueError as error:
            raise refusal("%gpumem", str(error)) from None

    def _release_children(self, typed: list[str]) -> str:
        children = LivingChildren()
        if not children.all:
            return "no child process lives"
        strangers = [word for word in typed if not word.isdecimal()]
        if strangers:
            raise ValueError(f"{strangers[0]!r} is no process id")
        chosen = children.chosen([int(pid) for pid in typed] or None)
        self._extension.show(children.text(NOTEBOOK_WIDTH))
        if not chosen:
            prompt = "End which of them? Process ids, or Enter for none: "
        else:
            others = "" if typed else " process ids,"
            prompt = f"End {described(chosen)}? y,{others} or Enter for none: "
        answer = _user_input(prompt)
        if answer is None:
            pids = [it.pid for it in chosen or children.all]
            return (
                "no process is ended, because this front end has no input: "
                f'`gpumem.release("children", end={pids})` ends them'
            )
        words = answer.replace(",", " ").split()
        if words and all(word.isdecimal() for word in words):
            chosen = children.chosen([int(word) for word in words])
        elif answer.strip().lower() not in {"y", "yes"}:
            chosen = []
        return children.end(chosen) if chosen else "no process is ended"

    def _snapshot(self, names: list[str]) -> str:
        if len(names) != 1:
            raise refusal("%gpumem", "snapshot needs the name of one file, such as memory.pickle")
        try:
            return str(snapshot(unquoted(names[0])))
        except (OSError, ValueError, _gpumem.GpuMemError) as error:
            raise refusal("%gpumem", f"snapshot: {error}") from None

    def _use(self, names: list[str]) -> str:
        if not names:
            raise refusal("%gpumem", "use needs the name of a source, or auto")
        try:
            _gpumem.use_sources(names)
        except _gpumem.DeviceError as error:
            raise refusal("%gpumem", f"use: {error}") from None
        # For a source that does not answer, the text gives the reason.
        return _gpumem.sources_text(names)

    def _baseline(self, name: str) -> str:
        if not name:
            raise refusal("%gpumem", "baseline needs a name")
        n_runs, lost = _gpumem.recording()._position()[1], ""
        try:
            set_baseline(name)
        except _gpumem.StoreError as error:
            lost = f"\n! only this session has it: {error}"
        runs = "1 run" if n_runs == 1 else f"{n_runs} runs"
        typed = f'"{name}"' if " " in name else name
        said = f"baseline {name}: {runs} · %gpumem_report --compare {typed} after the next ones"
        return _gpumem._printable_report(f"{said}{lost}")

    def _status(self) -> str:
        now = self._extension.stopped or self._recorded()
        counts = f"recorded so far: {_gpumem.recording()._counts()}"
        return f"{now}\n{counts}\n{self._kept()}\n{_looks()}\n{_gpumem.sources_text()}"

    def _kept(self) -> str:
        """Return where this session is kept on the disk, or why it is not."""
        path, trouble = _gpumem._store_status()
        if trouble is not None:
            return trouble
        if path is not None:
            return f"kept in {path}"
        if self._settings.store is False:
            return "not kept on the disk (`GpuMem.store` is False)"
        return "kept on the disk from the first run on"

    def _recorded(self) -> str:
        interval = self._settings.interval
        sampled = "" if interval == DEFAULT_INTERVAL else f", sampled every {interval} at most"
        if self._settings.record_all:
            return f"recording every cell{sampled} (`%gpumem off`: only cells with %%gpumem)"
        return f"recording cells with %%gpumem{sampled} (`%gpumem on`: every cell)"


def _looks() -> str:
    """Return how many looks at the heap were taken and answered, and why others were missed."""
    if reason := _gpumem._why_no_looks():
        return f"what holds memory, and loops: not recorded; {reason}"
    begun, answered, missed = _gpumem._looks()
    if not begun:
        return "what holds memory: no look yet"
    looks = "1 look" if begun == 1 else f"{begun} looks"
    reasons = "".join(f"\n  {n} missed: {reason}" for reason, n in missed.items())
    return f"what holds memory: {looks}, {answered} answered{reasons}"


def _expect(names: list[str], *, off: bool) -> str:
    """Note that the growth of these names is meant, or no longer; without names, list all."""
    expected = _gpumem._expected()
    if not names:
        if off:
            raise refusal("%gpumem", "expect --off needs a name")
        return f"expected: {', '.join(expected) or 'nothing; `%gpumem expect NAME` adds a name'}"
    shown = [_gpumem._printable(name) for name in names]
    if not off:
        _gpumem._expect(list(dict.fromkeys([*expected, *shown])))
        return f"expected: growth of {', '.join(shown)} is no longer reported as a leak"
    if strangers := [name for name in shown if name not in expected]:
        meant = did_you_mean(strangers[0], expected)
        raise refusal("%gpumem", f"{strangers[0]!r} is not expected{meant}")
    _gpumem._expect([name for name in expected if name not in shown])
    return f"growth of {', '.join(shown)} is reported again"


def _refuse_strays(options: Namespace) -> None:
    """Refuse options that belong to another action."""
    if options.action not in TAKE_NAMES and options.names:
        unexpected = " ".join(options.names)
        raise refusal("%gpumem", f"{options.action} takes no {unexpected!r}")
    for name, (actions, whose) in BELONG.items():
        if getattr(options, name) and options.action not in actions:
            raise refusal("%gpumem", f"--{name.replace('_', '-')} belongs to {whose}")


def _is_ours(line: str) -> bool:
    return line == CELL_MAGIC or line.startswith((CELL_MAGIC + " ", CELL_MAGIC + "\t"))


def _options_if_right(line: str) -> CellOptions | None:
    try:
        return _parsed_cell_line(line[len(CELL_MAGIC) :])
    except UsageError:
        return None


def _parsed_cell_line(line: str) -> CellOptions:
    options = _parsed_names(line)
    if not _gpumem._is_owner():
        # A fork has no sources and no devices, and reads none.
        return options
    if options.sources:
        known = [name for name, _, _ in _gpumem.source_states()]
        _check(CELL_MAGIC, "source", options.sources, known)
    if options.devices:
        _check(CELL_MAGIC, "device", options.devices, _gpumem.device_labels())
    if options.trace_file and not Path(options.trace_file).parent.is_dir():
        reason = f"--trace: there is no folder for {options.trace_file!r}"
        raise refusal(CELL_MAGIC, reason)
    return options


def _check(magic: str, what: str, names: list[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise refusal(magic, f"unknown {what} {name!r}: there is {', '.join(known)}")


@lru_cache(maxsize=256)
def _parsed_names(line: str) -> CellOptions:
    options = parsed(GpuMemMagics.record, CELL_MAGIC, line)
    return CellOptions(
        label=options.label,
        devices=listed(options.devices),
        sources=listed(options.sources),
        reset_peak=options.reset_peak,
        interval=options.interval,
        trace=options.trace is not None,
        trace_file=str(Path(options.trace).expanduser()) if options.trace else None,
        quiet=options.quiet,
        holders=options.holders,
    )


def _user_input(prompt: str) -> str | None:
    """Return the user's answer; ``None`` if the front end has no input."""
    try:
        return input(prompt)
    except (EOFError, OSError, NotImplementedError):
        return None
