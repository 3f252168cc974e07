"""Arguments of the magics: parsed by argparse, refused in one line."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.utils.process import arg_split  # type: ignore[attr-defined]

from gpumem import _gpumem
from gpumem._suggest import did_you_mean

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable

    from IPython.core.magic_arguments import MagicArgumentParser


def parsed(magic: Callable[..., None], name: str, line: str) -> Namespace:
    """Return the options on a magic's line, or refuse the line in the magic's ``name``."""
    parser = parser_of(magic)
    try:
        # Intermixed: options may precede names, as in `release --dry-run all`.
        options: Namespace = parser.parse_intermixed_args(arg_split(line, strict=True))
    except (UsageError, ValueError) as error:
        raise refusal(name, f"{error}{_meant(parser, str(error))}") from None
    return options


def parser_of(magic: Callable[..., None]) -> MagicArgumentParser:
    """Return the parser that IPython made for a magic."""
    parser: MagicArgumentParser = vars(magic)["parser"]
    return parser


def _meant(parser: MagicArgumentParser, reason: str) -> str:
    """Return the action or option that argparse's refusal may be about."""
    if action := re.search(r"invalid choice: '([^']*)'", reason):
        choices = (choice for it in parser._actions for choice in it.choices or ())
        return did_you_mean(action[1], choices)
    if option := re.search(r"unrecognized arguments: (--?[^\s=]+)", reason):
        known = (typed for it in parser._actions for typed in it.option_strings)
        return did_you_mean(option[1], known)
    return ""


def refusal(magic: str, reason: str) -> UsageError:
    """Return the error of a line that a magic does not take."""
    return UsageError(_gpumem._printable(f"{magic}: {reason} (help: {magic}?)"))


def interval_text(text: str) -> str:
    """Return an interval of the sampler, or refuse it with the sampler's message."""
    interval = unquoted(text)
    try:
        _gpumem._check_interval(interval)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return interval


def unquoted(word: str) -> str:
    """Remove the quotes that IPython leaves around an option's value."""
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "\"'"
    return word[1:-1] if is_quoted else word


def listed(values: Iterable[str] | None) -> list[str]:
    """Return the names in an option's values, which commas or spaces separate."""
    return [name for value in values or () for name in value.replace(",", " ").split()]
