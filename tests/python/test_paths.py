"""How the way to a tensor reads: as Python that a person knows."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim

if TYPE_CHECKING:
    from tests.python.conftest import Shell

# What a cell leaves under the name `it`, the path to its tensor, and what it is said to be.
PATHS = [
    ("it = [t]", "it[0]", "list of 1 tensor"),
    ("it = {'loss': [t]}", "it['loss'][0]", "dict of 1 tensor"),
    ("it = {(0, 'a'): t}", "it[(0, 'a')]", "dict of 1 tensor"),
    ("it = {1, t}", "it.<element>", "set of 1 tensor"),
    ("it = collections.deque([1, t], maxlen=3)", "it[1]", "deque of 1 tensor"),
    ("it = collections.defaultdict(list, a=[t])", "it['a'][0]", "defaultdict of 1 tensor"),
    ("it = collections.OrderedDict(a=t)", "it['a']", "OrderedDict of 1 tensor"),
    (
        "P = collections.namedtuple('P', 'x y')\nit = P(1, t)\ndel P",
        "it[1]",
        "P of 1 tensor",
    ),
    (
        "def make(t):\n    return lambda: t\nit = make(t)\ndel make",
        "it.<closure>.t",
        "function of 1 tensor",
    ),
    ("def it(x, y=t): pass", "it.<defaults>.y", "function of 1 tensor"),
    ("def it(*, y=t): pass", "it.<defaults>.y", "function of 1 tensor"),
    ("def it(): pass\nit.last = t", "it.last", "function of 1 tensor"),
    (
        "class A:\n    def f(self): pass\na = A()\na.w = t\nit = a.f\ndel a, A",
        "it.__self__.w",
        "bound method of 1 tensor",
    ),
    ("it = [t].append", "it.__self__[0]", "bound method of 1 tensor"),
    ("it = functools.partial(print, t)", "it.args[0]", "partial of 1 tensor"),
    ("it = functools.partial(print, end=t)", "it.keywords['end']", "partial of 1 tensor"),
    (
        "def g(t):\n    yield t\nit = g(t)\nnext(it)\ndel g",
        "it.<locals>.t",
        "generator of 1 tensor",
    ),
    ("it = (x for x in [t])", "it.<locals>..0.<inside>[0]", "generator of 1 tensor"),
    (
        "async def g(t):\n    await asyncio.sleep(1)\nit = g(t)\ndel g",
        "it.<locals>.t",
        "coroutine of 1 tensor",
    ),
    (
        "@functools.lru_cache\ndef it(n): return sim.tensor(n)\nit(PLANTED)\nNone",
        "it.<cache>",
        "cache of 1 tensor",
    ),
    (
        "@functools.cache\ndef it(n): return sim.tensor(n)\nit(PLANTED)\nNone",
        "it.<cache>[PLANTED]",
        "cache of 1 tensor",
    ),
    (
        "@dataclasses.dataclass(slots=True)\nclass D:\n    x: object\nit = D(t)\ndel D",
        "it.x",
        "D of 1 tensor",
    ),
    (
        "class S:\n    __slots__ = ('a', 'b')\nit = S()\nit.b = t\ndel S",
        "it.b",
        "S of 1 tensor",
    ),
    ("class it:\n    kept = t", "it.kept", "type of 1 tensor"),
    ("it = types.SimpleNamespace(a=t)", "it.a", "SimpleNamespace of 1 tensor"),
    ("it = types.MappingProxyType({'a': t})", "it.<inside>['a']", "mappingproxy of 1 tensor"),
    ("it = iter([t])", "it.<inside>[0]", "list_iterator of 1 tensor"),
    (
        (
            "class C:\n    @functools.cached_property\n"
            "    def w(self): return sim.tensor(PLANTED)\nit = C()\nit.w\ndel C"
        ),
        "it.w",
        "C of 1 tensor",
    ),
]


def run(shell: Shell, cell: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(cell)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("cell", "path", "what"), PATHS, ids=[path for _, path, _ in PATHS])
def test_the_way_reads_as_python(shell: Shell, cell: str, path: str, what: str) -> None:
    sim.use()
    planted = 3 << 20
    run(
        shell,
        "import asyncio, collections, dataclasses, functools, types\nfrom gpumem import sim",
    )
    cell = cell.replace("PLANTED", str(planted))
    run(shell, cell if "sim.tensor" in cell else f"t = sim.tensor({planted})\n{cell}\ndel t")
    found = [(it.path, it.what) for it in gpumem.holders().roots if it.name == "it"]
    if "coroutine" in what:
        run(shell, "it.close()")
    run(shell, "del it")
    assert found == [(path.replace("PLANTED", str(planted)), what)]
