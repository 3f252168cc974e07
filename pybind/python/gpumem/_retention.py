"""What IPython and Python keep alive after a cell, and how to free it.

Only what the user asks for is freed: afterwards ``%tb`` and ``%debug`` have nothing to
show, and ``Out`` is empty.
"""

from __future__ import annotations

import gc
import re
import sys
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

UNDERSCORES = ("_", "__", "___")
LAST_ERROR = ("last_exc", "last_value", "last_traceback", "last_type")
# Values in an output's place that stay: no result, or one that was forgotten.
NOTHING = ("", None)
DEBUGGED = ("_frame", "_exception", "_retval")
OUTPUT_NAME = re.compile(r"_\d+")
# The most errors to visit: a chain can be a cycle.
MAX_ERRORS = 1_000


class Errors:
    """The errors that are kept, with all their frames and variables."""

    def __init__(self, shell: InteractiveShell | None) -> None:
        self._shell = shell

    def description(self) -> str:
        """Return which they are; empty if none is kept."""
        errors = list(_with_causes(self._kept()))
        n_frames = sum(_n_frames(_link(error, "__traceback__")) for error in errors)
        if not errors:
            # A SyntaxError takes the place of the error before it everywhere but here.
            is_kept = any(getattr(it, "tb", None) is not None for it in self._formatters())
            is_kept = is_kept or bool(getattr(self._debugger(), "stack", ()))
            return "the frames of an earlier error" if is_kept or _debugged_frames() else ""
        first, *others = [type(error).__name__ for error in errors]
        behind = f" and {_plural(len(others), 'error')} behind it" if others else ""
        return f"{first}{behind} ({_plural(n_frames, 'frame')})"

    def forget(self) -> None:
        """Remove the frames from every error, and the errors from every place that keeps one."""
        for error in list(_with_causes(self._kept())):
            BaseException.with_traceback(error, None)
        for name in LAST_ERROR:
            with suppress(AttributeError):
                delattr(sys, name)
        if self._shell is not None:
            self._forget_in(self._shell)
        # IPython's own frame refers to the error, and its formatted traceback to the frames,
        # both in cycles.
        gc.collect()

    def _forget_in(self, shell: InteractiveShell) -> None:
        result = shell.last_execution_result
        if result is not None:
            result.error_in_exec = result.error_before_exec = None
        for formatter in self._formatters():
            if getattr(formatter, "tb", None) is not None:
                formatter.tb = None
        shell.SyntaxTB.last_syntax_error = None
        self._leave_debugger()

    def _kept(self) -> Iterator[BaseException]:
        places = [getattr(sys, name, None) for name in ("last_exc", "last_value")]
        if self._shell is not None:
            result = self._shell.last_execution_result
            if result is not None:
                places += [result.error_in_exec, result.error_before_exec]
            places.append(getattr(self._shell.SyntaxTB, "last_syntax_error", None))
            debugger = self._debugger()
            # Since Python 3.13 it keeps the chain of exceptions.
            places += getattr(debugger, "_chained_exceptions", ())
        return (error for error in places if isinstance(error, BaseException))

    def _formatters(self) -> list[Any]:
        if self._shell is None:
            return []
        return [self._shell.InteractiveTB, self._shell.SyntaxTB]

    def _debugger(self) -> Any:  # noqa: ANN401 (IPython's, or one of another package)
        return getattr(self._shell.InteractiveTB, "pdb", None) if self._shell else None

    def _leave_debugger(self) -> None:
        for variables in _debugged_frames():
            for name in DEBUGGED:
                variables.pop(name, None)
        debugger = self._debugger()
        if debugger is None:
            return
        with suppress(Exception):
            debugger.reset()
        with suppress(Exception):
            debugger.forget()
        for name in ("curframe_locals", "_chained_exceptions", "botframe", "stopframe"):
            if name in vars(debugger):
                setattr(debugger, name, () if name == "_chained_exceptions" else None)


class Outputs:
    """The results that IPython keeps: ``Out``, ``_``, ``_5`` and their hidden copies."""

    def __init__(self, shell: InteractiveShell | None) -> None:
        self._shell = shell

    def description(self) -> str:
        """Return which they are; empty if none is kept."""
        if self._shell is None:
            return ""
        numbers = sorted(self._shell.user_ns.get("_oh", ()))
        hidden = [name for name in self._shell.user_ns_hidden if OUTPUT_NAME.fullmatch(name)]
        n_kept = max(len(numbers), len(hidden))
        if not n_kept and not self._last_results():
            return ""
        shown = ", ".join(f"Out[{number}]" for number in numbers[-3:])
        which = f" ({'… ' if len(numbers) > len(numbers[-3:]) else ''}{shown})" if shown else ""
        return _plural(max(n_kept, 1), "output") + which

    def forget(self) -> None:
        """Empty every place; numbering continues, and ``_`` is the next result again."""
        shell = self._shell
        if shell is None:
            return
        self._forget_numbered(shell)
        for name in UNDERSCORES:
            # The user's own `_`, as in `for _ in …`, stays.
            places = (shell.user_ns_hidden, vars(shell.displayhook))
            if _is_one_of(shell.user_ns.get(name), tuple(place.get(name) for place in places)):
                shell.user_ns[name] = ""
            if name in shell.user_ns_hidden:
                shell.user_ns_hidden[name] = ""
            setattr(shell.displayhook, name, "")
        if shell.last_execution_result is not None:
            shell.last_execution_result.result = None

    @staticmethod
    def _forget_numbered(shell: InteractiveShell) -> None:
        outputs = shell.user_ns.get("_oh", {})
        copies = {f"_{number}": value for number, value in outputs.items()}
        hidden = shell.user_ns_hidden
        copies |= {name: hidden[name] for name in hidden if OUTPUT_NAME.fullmatch(name)}
        for name, value in copies.items():
            # A name that the user has reassigned stays.
            if shell.user_ns.get(name) is value:
                del shell.user_ns[name]
            hidden.pop(name, None)
        outputs.clear()

    def _last_results(self) -> bool:
        shell = self._shell
        results = [getattr(shell.displayhook, name, None) for name in UNDERSCORES] if shell else []
        return any(not _is_one_of(result, NOTHING) for result in results)


class Variable:
    """The object under one of the user's names, and all its names."""

    def __init__(self, shell: InteractiveShell, name: str) -> None:
        self._shell = shell
        self.name = name

    def problem(self) -> str:
        """Return why it cannot be released; empty if it can."""
        if self.name not in self._shell.user_ns:
            return f"there is no variable {self.name!r}"
        is_output = self.name in UNDERSCORES or OUTPUT_NAME.fullmatch(self.name)
        if self.name in self._shell.user_ns_hidden and not is_output:
            return f"{self.name!r} is IPython's own"
        return ""

    def names(self) -> list[str]:
        """Return its names: the one that was given, then the others."""
        outputs = self._shell.user_ns.get("_oh")
        names = {
            f"Out[{key}]" if namespace is outputs else str(key) for namespace, key in self._places()
        }
        return [self.name, *sorted(names - {self.name})]

    def description(self) -> str:
        """Return its names as text."""
        others = self.names()[1:]
        also = f" (also {', '.join(others)})" if others else ""
        return f"{self.name}{also}"

    def forget(self) -> None:
        """Remove it from every namespace and output, as ``%xdel`` does."""
        hook = self._shell.displayhook
        value = self._shell.user_ns[self.name]
        for namespace, key in self._places():
            if key in UNDERSCORES:
                namespace[key] = ""
            else:
                namespace.pop(key, None)
        for name in UNDERSCORES:
            if getattr(hook, name, None) is value:
                setattr(hook, name, "")
        result = self._shell.last_execution_result
        if result is not None and result.result is value:
            result.result = None

    def _places(self) -> list[tuple[dict[Any, Any], Any]]:
        value = self._shell.user_ns[self.name]
        namespaces = [*self._shell.all_ns_refs, self._shell.user_ns.get("_oh", {})]
        return [
            (namespace, key)
            for namespace in namespaces
            for key, other in list(namespace.items())
            if other is value
        ]


def _with_causes(errors: Iterator[BaseException]) -> Iterator[BaseException]:
    """Yield errors, the errors that led to them and those they group, each once."""
    seen: set[int] = set()
    waiting = list(errors)
    while waiting and len(seen) < MAX_ERRORS:
        error = waiting.pop(0)
        if id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        grouped: Any = ()
        with suppress(Exception):
            grouped = getattr(error, "exceptions", ())
        linked = [_link(error, "__cause__"), _link(error, "__context__")]
        linked += grouped if isinstance(grouped, tuple | list) else ()
        waiting += [link for link in linked if isinstance(link, BaseException)]


def _link(error: BaseException, name: str) -> Any:  # noqa: ANN401 (an error or a traceback)
    """Return Python's own value of that attribute, even if the error's class overrides it."""
    return vars(BaseException)[name].__get__(error)


def _debugged_frames() -> list[dict[str, Any]]:
    """Return the variables that the debugger has set in the modules of the frames it showed.

    Since Python 3.12 these are ``$_frame`` and ``$_exception``, which outlive the debugger.
    """
    found = []
    for module in list(sys.modules.values()):
        names = _names(module)
        variables = names.get("__pdb_convenience_variables") if names is not None else None
        if isinstance(variables, dict) and any(name in variables for name in DEBUGGED):
            found.append(variables)
    return found


def _names(module: object) -> dict[str, Any] | None:
    """Return a module's names without an attribute lookup, which would import a lazy module."""
    if not issubclass(type(module), ModuleType):
        return None
    names = vars(ModuleType)["__dict__"].__get__(module)
    return names if type(names) is dict else None


def _n_frames(traceback: TracebackType | None) -> int:
    n_frames = 0
    while traceback is not None:
        n_frames += 1
        traceback = traceback.tb_next
    return n_frames


def _is_one_of(value: object, others: tuple[object, ...]) -> bool:
    return any(value is other for other in others)


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
