"""Every way to a tensor: found by the walk, and printed as Python that a person knows."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING

import gpumem
import pytest
from gpumem import sim

from tests.support.graph import Graph
from tests.support.in_process import in_process
from tests.support.shell import open_shell, run

if TYPE_CHECKING:
    from tests.python.conftest import Shell

pytestmark = pytest.mark.python

PLANTED = 3 << 20
IMPORTS = "import asyncio, collections, dataclasses, functools, types\nfrom gpumem import sim"
CLASS = "class A: pass\nit = A()\n"
FAILING = """
def train(batch):
    rows = [batch]
    1 / 0
"""

# What a cell leaves of the tensor `t`, its path from the name, and what the name is said to be.
PATHS = [
    ("it = t", "it", "Tensor"),
    ("for batch in [t]: pass", "batch", "Tensor"),
    ("_hidden = t", "_hidden", "Tensor"),
    ("_ = t", "_", "Tensor"),
    ("it = [0, t]", "it[1]", "list of 1 tensor"),
    ("it = (0, (t,))", "it[1][0]", "tuple of 1 tensor"),
    ("it = {'loss': [t]}", "it['loss'][0]", "dict of 1 tensor"),
    ("it = {(0, 'a'): t}", "it[(0, 'a')]", "dict of 1 tensor"),
    ("it = {t: 1}", "it.<key>", "dict of 1 tensor"),
    ("it = {1, t}", "it.<element>", "set of 1 tensor"),
    ("it = frozenset([t])", "it.<element>", "frozenset of 1 tensor"),
    ("it = collections.deque([1, t], maxlen=3)", "it[1]", "deque of 1 tensor"),
    ("it = collections.defaultdict(list, a=[t])", "it['a'][0]", "defaultdict of 1 tensor"),
    ("it = collections.OrderedDict(a=t)", "it['a']", "OrderedDict of 1 tensor"),
    ("P = collections.namedtuple('P', 'x y')\nit = P(1, t)\ndel P", "it[1]", "P of 1 tensor"),
    (
        "def make(t):\n    return lambda: t\nit = make(t)\ndel make",
        "it.<closure>.t",
        "function of 1 tensor",
    ),
    ("def it(w=0, x=t, *, y=1): pass", "it.<defaults>.x", "function of 1 tensor"),
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
        FAILING + "try:\n    train(t)\nexcept ZeroDivisionError as e:\n    it = e\ndel train",
        "it.__traceback__.tb_next.tb_frame.<locals>.batch",
        "ZeroDivisionError of 1 tensor",
    ),
    (
        FAILING + "it = KeyError()\ntry:\n    train(t)\nexcept ZeroDivisionError as e:\n"
        "    it.__cause__ = e\ndel train",
        "it.__cause__.__traceback__.tb_next.tb_frame.<locals>.batch",
        "KeyError of 1 tensor",
    ),
    (CLASS + "it.kept = t\ndel A", "it.kept", "A of 1 tensor"),
    (CLASS + "it.deep = A()\nit.deep.kept = [t]\ndel A", "it.deep.kept[0]", "A of 1 tensor"),
    (
        "class S:\n    __slots__ = ('a', 'b')\nit = S()\nit.b = t\ndel S",
        "it.b",
        "S of 1 tensor",
    ),
    (
        "class S:\n    __slots__ = ('a',)\nclass B(S): pass\nit = B()\nit.a = t\ndel B, S",
        "it.a",
        "B of 1 tensor",
    ),
    (
        "class S:\n    __slots__ = ('a',)\nclass B(S): pass\nit = B()\nit.b = t\ndel B, S",
        "it.b",
        "B of 1 tensor",
    ),
    (
        "@dataclasses.dataclass(slots=True)\nclass D:\n    x: object\nit = D(t)\ndel D",
        "it.x",
        "D of 1 tensor",
    ),
    ("class L(list): pass\nit = L([t])\ndel L", "it[0]", "L of 1 tensor"),
    ("class L(list): pass\nit = L()\nit.kept = t\ndel L", "it.kept", "L of 1 tensor"),
    ("class it:\n    kept = t", "it.kept", "type of 1 tensor"),
    ("it = types.SimpleNamespace(a=t)", "it.a", "SimpleNamespace of 1 tensor"),
    ("it = types.ModuleType('made')\nit.kept = t", "it.kept", "module of 1 tensor"),
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


def found() -> list[tuple[str, str, str, str]]:
    """Return who keeps a tensor of the planted size alone."""
    roots = [it for it in gpumem.holders() if (it.device, it.n_bytes) == ("sim:0", PLANTED)]
    return [(it.kind, it.name, it.path, it.what) for it in roots]


def leave(shell: Shell, cell: str) -> None:
    """Run a cell that leaves a tensor of the planted size."""
    cell = cell.replace("PLANTED", str(PLANTED))
    run(shell, IMPORTS)
    run(shell, cell if "sim.tensor" in cell else f"t = sim.tensor({PLANTED})\n{cell}\ndel t")


def name_of(path: str) -> str:
    name: str = re.findall(r"^\w+", path)[0]
    return name


@pytest.mark.parametrize(("cell", "path", "what"), PATHS, ids=[path for _, path, _ in PATHS])
def test_a_path_is_found_and_reads_as_python(shell: Shell, cell: str, path: str, what: str) -> None:
    name, path = name_of(path), path.replace("PLANTED", str(PLANTED))
    sim.use()
    leave(shell, cell)
    assert found() == [("variable", name, path, what)]
    if "coroutine" in what:
        run(shell, "it.close()")
    run(shell, f"del {name}")
    # A class is part of a circle.
    gc.collect()
    assert sim.memory_stats()["allocated_bytes"] == 0


# Before Python 3.13 a walk outside of a copy keeps what it found in frames.
@in_process
def test_the_walk_takes_these_paths() -> None:
    sim.use()
    shell = open_shell()
    for cell, path, _ in PATHS:
        leave(shell, cell)
        name = name_of(path)
        # The words for a cache come later: to the walk it is the inside of an object.
        walked = path.replace("<cache>", "<inside>").replace("PLANTED", str(PLANTED))
        assert Graph({name: shell.user_ns[name]}).paths()[PLANTED] == walked, cell
        run(shell, "it.close()" if "async" in cell else f"del {name}")
