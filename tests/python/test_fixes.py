"""The line to change is Python before and after, whatever the cell looks like."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest
from gpumem import _gpumem

CALLS = [
    "losses.append({})",
    "losses.append(\n    {}\n)",
    "losses.append(  # kept\n    {}  # whole\n)",
    "[losses.append({}) for x in data]",
    "for x in data: losses.append({})",
    "if x: y = 1; losses.append({})",
    "losses[name].append({})",
    "losses['a'][0].append({})",
    "losses.setdefault(key, []).append({})",
    "losses[key] = {}",
    "losses[f(a)[0], 'b'] = {}",
    "losses += {}",
    "losses[key] += {}",
    "losses = losses + {}",
    "losses = [{} for x in data]",
    "losses = [\n    {}\n    for x in data\n]",
    "with no_grad(): losses.append({})",
    "total = sum(losses.append({}) or 0 for x in data)",
]
VALUES = [
    "x",
    "model(x)",
    "model(x, y=[1, 2]).sum()",
    "a * b + c",
    "-x",
    "x if x > 0 else y",
    "outputs[0]['loss']",
    "f(\n    x,  # the batch\n    y,\n)",
    "(yield x)",
    "(a, b)",
    "x.loss\\\n    .mean()",
    "1.5 * x",
    "{'a': x}[k]",
    "f'{x}'",
    "not x",
    "x @ w",
    "lambda: x",
    "x, y",
    "*x",
    "x == y",
    "(x := f(y))",
    "'#(' + x",
    '"""\n(\n"""',
]


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def fixed(source: str, *, has_graph: bool, scalars: bool) -> tuple[str, str] | None:
    found = _gpumem._testing.fix("losses[0].grad_fn", source, has_graph=has_graph, scalars=scalars)
    return None if found is None or found[0] is None else (found[0], found[1])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("indent", ["", "    "])
def test_what_is_written_instead_is_python_where_the_cell_was(call: str, indent: str) -> None:
    n_fixed = 0
    for value in VALUES:
        line = call.replace("{}", value, 1)
        # A long string's own lines would be other ones.
        block = indent + line if '"""' in line else textwrap.indent(line, indent)
        source = f"import torch\n{'if True:' if indent else ''}\n{indent}n = 1\n{block}\n"
        for has_graph, scalars in [(True, False), (True, True), (False, False)]:
            fix = fixed(source, has_graph=has_graph, scalars=scalars)
            if fix is None:
                continue
            before, after = fix
            n_fixed += 1
            assert before in source
            if is_python(before):
                assert is_python(after), (before, after)
            whole = source.replace(before, after.replace("\n", f"\n{indent}"))
            if is_python(source) and "\n" not in before:
                assert is_python(whole), (source, whole)
    assert n_fixed


def test_a_kept_value_is_cut_and_nothing_else_is_touched() -> None:
    """The tree after the change is the tree before it, with a call around one value."""
    # What is added to a sum may be taken together: that tree is another one.
    for call in (call for call in CALLS if call != "losses = losses + {}"):
        for value in ["x", "model(x)", "a * b + c", "x if x > 0 else y", "-x"]:
            fix = fixed(call.replace("{}", value, 1), has_graph=True, scalars=True)
            if fix is None:
                continue
            before, after = (ast.dump(ast.parse(side)) for side in fix)
            inner = ast.dump(ast.parse(value, mode="eval").body)
            item = ast.dump(ast.parse(f"({value}).item()", mode="eval").body)
            assert after == before.replace(inner, item), fix


def test_pieces_in_any_order_stay_python() -> None:
    pieces = [*CALLS, *VALUES, "(", ")", "[", "]", "'", '"', "#", "\\", ";", "\n", "    ", ","]
    rng = random.Random(7)  # noqa: S311 (an order that is the same each time)
    n_fixed = 0
    for _ in range(4000):
        parts = rng.choices(pieces, k=rng.randrange(1, 6))
        source = rng.choice(["", " ", "\n"]).join(parts).replace("{}", rng.choice(VALUES))
        fix = fixed(source, has_graph=rng.random() < 0.7, scalars=rng.random() < 0.5)
        if fix is not None and is_python(fix[0]):
            n_fixed += 1
            assert is_python(fix[1]), fix
    assert n_fixed > 100


@pytest.mark.parametrize(
    ("cell", "before"),
    [
        ("model(x)", "model(x)"),
        ("y = 1\nmodel(\n    x\n)  # shown", "model(\n    x\n)"),
        ("[f(x) for x in y]", "[f(x) for x in y]"),
        ("x == y", None),
        ("x = 1", None),
        ("for x in y:\n    x", None),
        ("model(x);", None),
        ("%time x", None),
    ],
)
def test_what_is_displayed_is_silenced(cell: str, before: str | None) -> None:
    found = _gpumem._testing.fix("Out[1]", cell, kind="output_history")
    assert found is not None
    assert found[0] == before
    assert found[1] == ("%gpumem release outputs" if before is None else f"{before};")
