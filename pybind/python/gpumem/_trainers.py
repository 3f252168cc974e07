"""Which callback judges the steps of a trainer that a cell calls.

Only what the cell's text calls by name counts, and only if that name is a trainer: it is better to
say nothing than something wrong.
"""

from __future__ import annotations

import ast
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from IPython.core.interactiveshell import InteractiveShell


class Kind(NamedTuple):
    """A trainer: the packages of its class, the class, the method, and the callback for it."""

    packages: tuple[str, ...]
    class_name: str
    method: str
    callback: str


KINDS = (
    Kind(("transformers",), "Trainer", "train", "TrainerCallback"),
    Kind(("lightning", "pytorch_lightning"), "Trainer", "fit", "Lightning"),
    Kind(("keras", "tensorflow", "tf_keras"), "Model", "fit", "Keras"),
)

SEPARATE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""Code inside these does not run with the cell."""


def hint(shell: InteractiveShell, source: str) -> str | None:
    """Return what to add to the trainer that this cell calls, if it calls one."""
    for called, method in _calls(source):
        found = _value(called, shell.user_ns)
        kind = None if found is None else _kind(found, method)
        if kind is not None:
            name = ast.unparse(called) if isinstance(called, ast.Name) else kind.class_name
            callback = f"gpumem.callbacks.{kind.callback}()"
            return f"{name}.{method} is one run: callbacks=[{callback}] judges growth in its steps"
    return None


def _calls(source: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield what methods are called of, and their names."""
    plain = ("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
    try:
        tree = ast.parse("\n".join(plain))
    except (SyntaxError, ValueError):
        return
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.value, node.func.attr
        pending += [it for it in ast.iter_child_nodes(node) if not isinstance(it, SEPARATE)]


def _value(called: ast.expr, names: dict[str, Any]) -> object:
    """Return the object that a name stands for, or the class of which one is made on the spot."""
    match called:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Call(func=ast.Name(id=name)):
            return names.get(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            found = names.get(module)
            if not issubclass(type(found), ModuleType):
                return None
            return ModuleType.__getattribute__(found, "__dict__").get(name)
        case _:
            return None


def _kind(found: object, method: str) -> Kind | None:
    """Recognise a trainer by its classes; none of the object's code runs."""
    # A stand-in for another object may run code when `isinstance` asks it.
    own: Any = found if issubclass(type(found), type) else type(found)
    for base in type.__getattribute__(own, "__mro__"):
        module, name = (type.__getattribute__(base, of) for of in ("__module__", "__name__"))
        package = str(module).partition(".")[0]
        for kind in KINDS:
            of_class = package in kind.packages and name == kind.class_name
            if of_class and method == kind.method:
                return kind
    return None
