"""Completions after the magics: actions, options and their values.

IPython calls it while the user types, so it runs none of the user's code, searches
no heap, and never fails: without an answer, IPython's own completion goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core import completer as _completer

from gpumem import _gpumem
from gpumem._sessions import sessions

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser
    from collections.abc import Callable, Iterable, Mapping

    from IPython.core.interactiveshell import InteractiveShell

    Values = Callable[[InteractiveShell], Iterable[str]]

INTERVALS = ("1ms", "10ms", "100ms", "1s")

RELEASABLE = ("traceback", "outputs", "cycles", "cache", "all", "children")


def _names(shell: InteractiveShell) -> list[str]:
    names = (name for name in shell.user_ns if name not in shell.user_ns_hidden)
    # IPython's and the module's own, of which some shells hide only a part.
    return [name for name in names if name != "_" and not name.startswith("__")]


def _sources(_shell: InteractiveShell) -> list[str]:
    return [name for name, _, _ in _gpumem.source_states()]


def _session_ids() -> list[str]:
    return ["last", *(session.id for session in sessions())]


# For an option's destination: the values that it takes.
OF_OPTIONS: dict[str, Values] = {
    "compare": lambda _: [*_gpumem._baseline_names(), *_session_ids()],
    "device": lambda _: _gpumem.device_labels(),
    "devices": lambda _: _gpumem.device_labels(),
    "interval": lambda _: INTERVALS,
    "session": lambda _: _session_ids(),
    "sources": _sources,
}

# For an action of `%gpumem`: the names that it takes.
OF_ACTIONS: dict[str, Values] = {
    "baseline": lambda _: _gpumem._baseline_names(),
    "expect": lambda shell: [*_gpumem._expected(), *_names(shell)],
    "holders": _names,
    "release": lambda shell: [*RELEASABLE, *_names(shell)],
    "use": lambda shell: ["auto", *_sources(shell)],
    "why": _names,
}


class Completer:
    """Completes the line of one magic; ``follow`` are magics that its actions stand for."""

    def __init__(
        self,
        parser: ArgumentParser,
        belong: Mapping[str, set[str]] | None = None,
        follow: Mapping[str, Completer] | None = None,
    ) -> None:
        """Complete what ``parser`` takes; ``belong`` has the actions of options that some take."""
        self._options = {
            typed: option for option in parser._actions for typed in option.option_strings
        }
        positional = [it for it in parser._actions if not it.option_strings and it.choices]
        self._actions = [str(choice) for it in positional for choice in it.choices or ()]
        self._belong = belong or {}
        self._follow = follow or {}

    def matches(self, shell: InteractiveShell, line: str, word: str) -> list[str]:
        """Return what may stand in place of ``word``, IPython's last word of ``line``."""
        try:
            # IPython's word begins after the last `:` or `=`: `cuda:0`, `--device=cuda:0`.
            words = line.split()[1:]
            own = words.pop() if words and not line[-1].isspace() else ""
            offered = self.offers(shell, words, own)
            n_before = len(own) - len(word)
            return [it[n_before:] for it in offered if it.startswith(own)]
        except Exception:  # The Tab key goes on without us.
            return []

    def offers(self, shell: InteractiveShell, before: list[str], word: str) -> list[str]:
        """Return the words that may follow those ``before``, whatever ``word`` begins with."""
        action = next((it for it in before if not it.startswith("-")), None)
        if action is not None and action in self._follow:
            rest = list(before)
            rest.remove(action)
            return self._follow[action].offers(shell, rest, word)
        option, equals, _ = word.partition("=")
        if equals and option in self._options:
            return [f"{option}={value}" for value in self._values(shell, option)]
        if word.startswith("-"):
            return [typed for typed, it in self._options.items() if self._fits(it, action)]
        if before and before[-1] in self._options and self._takes_value(before[-1]):
            return self._values(shell, before[-1])
        if action is None:
            return self._actions
        return list(OF_ACTIONS[action](shell)) if action in OF_ACTIONS else []

    def _values(self, shell: InteractiveShell, option: str) -> list[str]:
        values = OF_OPTIONS.get(self._options[option].dest)
        return [] if values is None else list(values(shell))

    def _takes_value(self, option: str) -> bool:
        return self._options[option].nargs != 0

    def _fits(self, option: Action, action: str | None) -> bool:
        return option.dest not in self._belong or action in self._belong[option.dest]


def install(shell: InteractiveShell, completers: Mapping[str, Completer]) -> Callable[[], None]:
    """Complete the lines of these magics in a shell; return how to undo it."""
    matchers: list[Any] | None = getattr(shell.Completer, "custom_matchers", None)
    if matchers is None:
        return lambda: None

    def matched(line: str, word: str) -> list[str]:
        magic, blank, _ = line.lstrip().partition(" ")
        completer = completers.get(magic)
        return completer.matches(shell, line, word) if completer and blank else []

    matcher: Any
    if hasattr(_completer, "context_matcher"):

        def matcher(context: _completer.CompletionContext) -> dict[str, Any]:
            found = matched(context.text_until_cursor, context.token)
            completions = [_completer.SimpleCompletion(text=it) for it in found]
            # IPython would mix names and keywords in.
            return {"completions": completions, "suppress": bool(found), "ordered": True}

        matcher.matcher_api_version = 2
        matcher.matcher_priority = 1
    else:

        def matcher(word: str) -> list[str]:
            return matched(shell.Completer.text_until_cursor, word)

    matchers.append(matcher)

    def uninstall() -> None:
        if matcher in matchers:
            matchers.remove(matcher)

    return uninstall
