"""The line of a test, or of the code that it calls, that fills a name."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def line_of(path: str, function: Callable[..., Any] | None) -> str | None:
    """Return ``test_a.py:12``: the first line of the test that mentions what a path begins with.

    Else the first in a function of the module whose variable it is, else where it is defined.
    """
    module, variable = _split(path)
    source: Any
    for source in (function and inspect.unwrap(function), module):
        number = None if source is None else _first(source, variable)
        if number is not None:
            return f"{Path(inspect.getsourcefile(source) or '').name}:{number}"
    return None


def module_text(path: str) -> str:
    """Return the text of the module whose variable a path begins with; empty if it has none."""
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(_split(path)[0])
    return ""


def fills(statement: str, path: str, function: Callable[..., Any] | None) -> bool:
    """Whether a statement of a path's module may be the test's: it is not that of another test."""
    test = function and inspect.unwrap(function)
    if sys.modules.get(getattr(test, "__module__", "")) is not _split(path)[0]:
        return True
    first, *_ = statement.splitlines()
    with contextlib.suppress(OSError, TypeError):
        return test is not None and first.strip() in inspect.getsource(test)
    return False


def is_mentioned(path: str, function: Callable[..., Any] | None) -> bool:
    """Whether a test mentions what a path begins with."""
    return function is not None and _first(inspect.unwrap(function), _split(path)[1]) is not None


def patch(before: str, after: str) -> list[str]:
    """Return what to change, as a patch shows it."""
    removed = [f"- {line}" for line in before.splitlines()]
    return [*removed, *(f"+ {line}" for line in after.splitlines())]


def place(function: Callable[..., Any]) -> str | None:
    """Return where a function is defined."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _split(path: str) -> tuple[Any, str]:
    """Return the module and the variable of ``package.module.name[0]``, or ``x`` of ``self.x``."""
    names = re.split(r"[^\w.]", path, maxsplit=1)[0].split(".")
    for n in range(len(names) - 1, 0, -1):
        module = sys.modules.get(".".join(names[:n]))
        if module is not None:
            return module, names[n]
    return None, names[min(1, len(names) - 1)]


@functools.lru_cache
def _first(source: Any, variable: str) -> int | None:
    """Return the first line of a function or a module that mentions a variable, if it has one.

    Of a module, lines in functions come before those that define it.
    """
    try:
        lines, start = inspect.getsourcelines(source)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    functions = [it for it in ast.walk(tree) if isinstance(it, FUNCTIONS)]
    for part in [*functions, tree]:
        number = min(_lines(part, variable), default=None)
        if number is not None:
            return number + max(start, 1) - 1
    return None


def _lines(part: ast.AST, variable: str) -> Iterator[int]:
    for node in ast.walk(part):
        name = None
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = node.name
        elif isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        if name == variable:
            yield getattr(node, "lineno", 1)
