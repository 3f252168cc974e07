"""Write docs/api.md from gpumem's docstrings; with ``--check`` only say whether it is current."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
from gpumem import _gpumem, types

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
STUB = ast.parse(Path(_gpumem.__file__).with_name("_gpumem.pyi").read_text("utf-8"))
INTRODUCTION = """\
# Python API

`import gpumem` gives these names. The [commands](commands.md) do most of this in a notebook.
Sizes are bytes, durations nanoseconds, times nanoseconds since the recording's start; `None` is
an unknown value.
The docstrings are the source of this page.
"""
MODULES = """\
## Modules

| module | what it has |
|---|---|
| `gpumem.types` | the [classes of results](#result-types) |
| `gpumem.details` | what only one kind of finding has: `Finding.details` |
| `gpumem.sim` | [simulated devices](commands.md#the-simulated-gpu) and tensors |
| `gpumem.callbacks` | callbacks for [trainers and trackers](trainers.md) |
| `gpumem.dask` | `register(client)` for [dask](clusters.md#dask) |
| `gpumem.ray` | `init()` for [Ray](clusters.md#ray) |
| `gpumem.classic` | the API of [gpu-memory-profiler](migrating.md) |
"""
TYPES = """\
## Result types

In `gpumem.types`. `repr` gives one line, `str` the text; a notebook shows a table or the report.
"""


def main() -> None:
    """Write the page, or check it."""
    page = "\n".join(sections())
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text("utf-8") != page:
            sys.exit("docs/api.md is not current: run `python xtask/python/api_page.py`")
        return
    PAGE.write_text(page, encoding="utf-8")


def sections() -> Iterator[str]:
    """Return the page's sections."""
    found = {name: getattr(gpumem, name) for name in gpumem.__all__ if name != "__version__"}
    errors = [it for it in found.values() if inspect.isclass(it) and issubclass(it, Exception)]
    yield INTRODUCTION
    yield "## Functions\n"
    for name, it in found.items():
        if it not in errors and not inspect.ismodule(it):
            yield function(name, it)
    yield "## Errors\n\n| error | meaning |\n|---|---|"
    for error in errors:
        base = error.__bases__[0].__name__
        yield f"| `{error.__name__}({base})` | {cell(inspect.getdoc(error) or '')} |"
    yield f"\n{MODULES}"
    yield TYPES
    for name in types.__all__:
        node = declared(name, getattr(types, name))
        if isinstance(node, ast.ClassDef):
            yield result(name, node)


def function(name: str, it: object) -> str:
    """Return a function's signature and docstring."""
    node = declared(name, it)
    doc = markdown(ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef):
        made = next((one for one in node.body if is_named(one, "__new__")), None)
        if not isinstance(made, ast.FunctionDef):
            return result(f"gpumem.{name}", node)
        arguments = signature(made).removeprefix("cls, ")
        shown = f"def {name}({arguments}) -> Iterable[_T]: ..."
    else:
        returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        shown = f"def {name}({signature(node)}){returned}: ...".replace("_gpumem.", "")
    return f"### `gpumem.{name}`\n\n```python\n{shown}\n```\n\n{doc}\n"


def result(name: str, node: ast.ClassDef) -> str:
    """Return a class with its fields and methods."""
    rows = [f"| {cell(f'`{title}`')} | {cell(doc)} |" for title, doc in members(node)]
    table = "\n".join(["", "| member | meaning |", "|---|---|", *rows, ""]) if rows else ""
    return f"### `{name}`\n\n{markdown(ast.get_docstring(node) or '')}\n{table}"


def members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Return the public fields and methods of a class, and what each means."""
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            is_doc = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            doc = str(after.value.value) if is_doc else ""  # type: ignore[union-attr]
            yield f"{one.target.id}: {ast.unparse(one.annotation)}", doc
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            doc = ast.get_docstring(one) or ""
            is_property = any("property" in ast.unparse(it) for it in one.decorator_list)
            yield one.name if is_property else f"{one.name}()", doc.partition("\n\n")[0]


def declared(name: str, it: object) -> ast.FunctionDef | ast.ClassDef:
    """Return where a name is declared: in its source, or in the stub of the compiled module."""
    source = STUB
    if getattr(_gpumem, name, None) is not it:
        source = ast.parse(textwrap.dedent(inspect.getsource(it)))  # type: ignore[arg-type]
    for node in source.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            # Of overloads, the first has the docstring.
            return node
    raise LookupError(name)


def is_named(node: ast.AST, name: str) -> bool:
    """Return whether this declares the function or class of that name."""
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name


def signature(node: ast.FunctionDef) -> str:
    """Return a function's parameters."""
    return ast.unparse(node.args).replace("_gpumem.", "")


def markdown(doc: str) -> str:
    """Return a docstring as Markdown."""
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", doc.replace("``", "`"))
    text = re.sub(r"::\n\n((?:    .*\n?|\n)+)", example, text)
    return re.sub(r"^Raises:\n((?:    .*\n?)+)", raised, text, flags=re.MULTILINE).rstrip()


def example(found: re.Match[str]) -> str:
    """Return an indented example as a block of code."""
    return f":\n\n```python\n{textwrap.dedent(found[1]).strip()}\n```\n\n"


def raised(found: re.Match[str]) -> str:
    """Return the errors as a list."""
    lines = textwrap.dedent(found[1]).strip().splitlines()
    return "Raises:\n\n" + "\n".join(re.sub(r"^(\w+): ", r"- `\1`: ", line) for line in lines)


def cell(doc: str) -> str:
    """Return a docstring as one cell of a table."""
    return markdown(" ".join(doc.split())).replace("|", "\\|")


if __name__ == "__main__":
    main()
