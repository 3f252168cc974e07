"""The public names: few, each of one thing, and each with a docstring that an editor shows."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import _gpumem, classic, details, types

from tests.support.programs import run_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

MODULES = [gpumem, types, classic]
# The names of methods that Python gives a class by itself.
PLAIN = set(dir(object)) | {"__module__", "__annotations__"}
STUB = Path(_gpumem.__file__).with_name("_gpumem.pyi")


def public(module: ModuleType) -> dict[str, object]:
    names = [name for name in module.__all__ if name != "__version__"]
    return {name: getattr(module, name) for name in names}


def test_a_notebook_needs_at_most_35_names() -> None:
    assert len(gpumem.__all__) <= 35
    assert gpumem.__all__ == sorted(gpumem.__all__)
    for module in MODULES:
        assert all(hasattr(module, name) for name in module.__all__)


def test_nothing_else_is_public() -> None:
    shown = {name for name in dir(gpumem) if not name.startswith("_")}
    submodules = {name for name in shown if inspect.ismodule(getattr(gpumem, name))}
    assert shown - submodules <= set(gpumem.__all__)


def test_no_two_classes_have_one_name() -> None:
    classes = {
        it
        for module in [*MODULES, details]
        for name, it in vars(module).items()
        if inspect.isclass(it) and it.__module__.startswith("gpumem") and not name.startswith("_")
    }
    assert [name for name, n in Counter(it.__name__ for it in classes).items() if n > 1] == []


def undocumented(where: str, it: object) -> Iterator[str]:
    # Of a dataclass, Python makes a docstring: its signature.
    doc = inspect.getdoc(it) or ""
    if not doc or doc.startswith(f"{getattr(it, '__name__', '')}("):
        yield where
    if inspect.isclass(it) and it.__module__.startswith("gpumem"):
        for name, member in vars(it).items():
            is_code = callable(member) or isinstance(member, (property, staticmethod, classmethod))
            if is_code and not name.startswith("_") and not inspect.getdoc(member):
                yield f"{where}.{name}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_each_public_name_has_a_docstring(module: ModuleType) -> None:
    missing = [it for name, value in public(module).items() for it in undocumented(name, value)]
    assert missing == []


def test_an_editor_shows_a_docstring_of_each_compiled_name() -> None:
    found = [public(module) for module in MODULES]
    names = {name for it in found for name in it if getattr(_gpumem, name, None) is it[name]}
    missing = []
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name not in names:
            continue
        members = node.body if isinstance(node, ast.ClassDef) else []
        functions = [it for it in members if isinstance(it, ast.FunctionDef)]
        shown = [it for it in functions if not it.name.startswith("_")]
        missing += [it.name for it in [node, *shown] if ast.get_docstring(it) is None]
    assert missing == []


def test_results_print_as_text_and_repr_is_one_line() -> None:
    gpumem.sim.use()
    kept = [gpumem.sim.tensor(1 << 20)]
    recording = gpumem.recording()
    results: list[object] = [
        gpumem.report(),
        gpumem.compare(recording, recording),
        gpumem.holders(),
        gpumem.who(),
        gpumem.release("cycles", dry_run=True),
        gpumem.classify_growth([float(n << 20) for n in range(12)]),
    ]
    del kept
    for result in results:
        assert "\n" not in repr(result)
        assert repr(result) != str(result)
        assert hasattr(result, "_repr_html_") or hasattr(result, "_ipython_display_")


def test_the_api_page_has_these_docstrings() -> None:
    root = Path(__file__).parents[2]
    done = run_python(str(root / "xtask/python/api_page.py"), "--check")
    assert done.returncode == 0, done.stderr
