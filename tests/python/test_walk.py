"""The walk over live objects: what it finds, and what it leaves alone."""

from __future__ import annotations

import array
import functools
import gc
import json
import random
import sys
import threading
import time
import types
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _gpumem, register_adapter, sim

from tests.python.hostile import Lies, unbelieved
from tests.support.graph import Graph, path_to
from tests.support.in_process import in_process
from tests.support.programs import run_python
from tests.support.shell import open_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.python.conftest import Shell

pytestmark = pytest.mark.python


class Plain:
    """An instance with a dict."""


class Slotted:
    """An instance with one slot."""

    __slots__ = ("kept",)


def with_attributes(made: Any, **attributes: object) -> Any:
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def closure(kept: object) -> Callable[[], object]:
    return lambda: kept


def default(kept: object) -> Callable[[], object]:
    def function(first: object = None, second: object = kept, *, third: object = 3) -> object:
        return first, second, third

    return function


def generator(kept: object) -> Iterator[int]:
    def frame() -> Iterator[int]:
        batch = kept
        yield 1
        del batch

    suspended = frame()
    next(suspended)
    return suspended


def failed(kept: object) -> Exception:
    def inner() -> None:
        batch = [kept]
        raise ValueError(len(batch))

    try:
        inner()
    except ValueError as error:
        kept = None
        return error
    raise AssertionError


def test_a_class_reached_by_its_instance_is_found_last() -> None:
    made = type("Made", (), {"kept": sim.tensor(777)})
    assert path_to(made()) == "x.__class__.kept"
    assert Graph({"x": made(), "y": made}).paths()[777] == "y.kept"


def test_the_graph_of_a_tensor_is_found() -> None:
    weight = sim.tensor(1000, requires_grad=True)
    loss = ((sim.tensor(777) @ weight) @ weight).sum()
    loss.backward()
    graph = Graph({"loss": loss, "weight": weight})
    # Backward freed what the graph saved, and made a gradient.
    assert set(graph.paths()) == {4, 1000}
    kept = ((sim.tensor(777) @ weight) @ weight).sum()
    graph = Graph({"kept": kept, "weight": weight})
    assert {4, 777, 1000} <= set(graph.paths())
    assert {"graph", "parameter", "gradient", "tensor"} <= graph.categories()


@pytest.mark.parametrize(
    ("value", "n_bytes"),
    [
        (bytes(5000), sys.getsizeof(bytes(5000))),
        (bytearray(5000), sys.getsizeof(bytearray(5000))),
        ("ä" * 5000, sys.getsizeof("ä" * 5000)),
        (array.array("d", [0.0]) * 1000, (array.array("d", [0.0]) * 1000).__sizeof__()),
        (memoryview(bytes(5000))[:10], sys.getsizeof(bytes(5000))),
    ],
)
def test_bytes_of_pythons_own_types_are_found(value: object, n_bytes: int) -> None:
    assert list(Graph({"x": [value], "same": value}).paths()) == [n_bytes]


def found_bytes(value: Any) -> int:
    """Return the bytes that a walk finds in a value."""
    return sum(storage[1] for *_, storage in Graph({"it": value}).nodes if storage)


def rows() -> list[dict[str, float]]:
    return [{"n": n, "x": n + 0.5} for n in range(1000, 11_000)]


@pytest.mark.parametrize(
    ("value", "item"),
    [
        (rows(), [{"n": 1, "x": 2}, 1000, 0.5]),
        pytest.param(
            {("key", n): f"text {n}" for n in range(1000, 11_000)},
            [("key", 1), 1000, "text 9999"],
            marks=pytest.mark.skipif(
                sys.version_info < (3, 11), reason="only the keys are weighed in Python 3.10"
            ),
        ),
        (
            [[n + 0.5, (n, f"{n}")] for n in range(1000, 11_000)],
            [[1, 2], 0.5, (1, 2), 1000, "9999"],
        ),
    ],
)
def test_long_collections_are_estimated(value: Any, item: list[Any]) -> None:
    an_item = sum(map(sys.getsizeof, item))
    assert found_bytes(value) == pytest.approx(sys.getsizeof(value) + 10_000 * an_item, rel=0.1)


def test_long_lists_in_a_long_list_count_once() -> None:
    lists = [[n + 0.5 for n in range(2000)] for _ in range(1500)]
    expected = sum(map(sys.getsizeof, lists)) + 1500 * 2000 * sys.getsizeof(0.5)
    assert found_bytes(lists) == pytest.approx(expected, rel=0.1)


class HostileList(list[int]):
    """A list whose class has its own idea of its length."""

    def __len__(self) -> int:
        raise AssertionError


class HostileTable(dict[int, int]):
    """A dict that calls itself one of Python's own, with a length of its own."""

    def __len__(self) -> int:
        raise AssertionError


HostileTable.__module__, HostileTable.__qualname__ = "builtins", "dict"


def test_len_of_a_users_list_class_is_not_called() -> None:
    values = HostileList(range(10_000)), HostileTable.fromkeys(range(10_000))
    assert [found_bytes(value) for value in values] == [0, 0]


def test_what_two_lists_share_is_in_neither() -> None:
    original = rows()
    copy = list(original)
    assert found_bytes(copy) == pytest.approx(sys.getsizeof(copy), rel=0.01)


def test_short_texts_are_passed() -> None:
    assert Graph({"x": ["a" * 4000, b"a" * 500, bytearray(100)]}).paths() == {}


class HostileText(str):
    """A text whose class has its own idea of its size."""

    __slots__ = ()

    def __sizeof__(self) -> int:
        raise AssertionError


def test_len_of_a_users_str_class_is_not_called() -> None:
    assert Graph({"x": HostileText("a" * 5000)}).paths() == {}


def test_a_storage_that_several_share_is_one() -> None:
    whole = sim.tensor(777)
    graph = Graph({"a": whole, "b": [whole.detach(), whole.detach()]})
    assert len([storage for _, _, storage in graph.nodes if storage]) == 1


def test_a_function_does_not_hold_the_globals_of_its_module() -> None:
    assert path_to(closure(None)) is None
    space: dict[str, Any] = {"held": sim.tensor(777)}
    exec("def function(): pass", space)  # noqa: S102 (a namespace that is no module's)
    assert path_to(space["function"]) == "x.__globals__['held']"


# A graph for a test is read as in a copy of the process, where locals are pinned before 3.13. That
# the process itself lets go of them is tested with real looks, in tests/harm.
NOT_PINNED = pytest.mark.skipif(sys.version_info < (3, 13), reason="a copy pins locals")


@NOT_PINNED
def test_nothing_is_kept_alive() -> None:
    for hold in (
        lambda t: [t],
        generator,
        failed,
        closure,
        lambda t: with_attributes(Plain(), k=t),
    ):
        tensor = sim.tensor(777)
        held = hold(tensor)
        alive = weakref.ref(tensor)
        assert path_to(held) is not None
        del tensor, held
        gc.collect()
        assert alive() is None


@NOT_PINNED
def test_the_locals_of_a_running_function_are_not_kept() -> None:
    kept = sim.tensor(777)
    alive = weakref.ref(kept)
    assert 777 in Graph().paths()
    del kept
    assert alive() is None


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    Graph({})
    assert gc.isenabled()
    gc.disable()
    try:
        Graph({})
        assert not gc.isenabled()
    finally:
        gc.enable()


CALLS: list[str] = []


class Noting(type):
    """A metaclass that notes every look."""

    def __getattribute__(cls, name: str) -> object:
        CALLS.append(f"class {name}")
        return super().__getattribute__(name)

    def __instancecheck__(cls, instance: object) -> bool:
        CALLS.append("instancecheck")
        return super().__instancecheck__(instance)

    def mro(cls) -> list[type]:
        return super().mro()


class Hostile(metaclass=Noting):
    """An object that notes every look."""

    def __init__(self, kept: object) -> None:
        object.__setattr__(self, "kept", kept)

    def __getattribute__(self, name: str) -> object:
        CALLS.append(f"getattribute {name}")
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> object:
        CALLS.append(f"getattr {name}")
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        CALLS.append("eq")
        return self is other

    def __hash__(self) -> int:
        CALLS.append("hash")
        return 1

    def __repr__(self) -> str:
        CALLS.append("repr")
        return "hostile"

    def __len__(self) -> int:
        CALLS.append("len")
        return 0

    def __iter__(self) -> Iterator[object]:
        CALLS.append("iter")
        return iter(())

    def __bool__(self) -> bool:
        CALLS.append("bool")
        return False

    def __del__(self) -> None:
        CALLS.append("del")

    @property
    def secret(self) -> object:
        """Note the access."""
        CALLS.append("property")
        return None

    @property
    def __class__(self) -> type:
        CALLS.append("__class__")
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise NotImplementedError

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        CALLS.append("__dict__")
        return {}


class HostileDict(dict[Any, Any]):
    """A dict that notes every look."""

    def __getitem__(self, key: object) -> object:
        CALLS.append("getitem")
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        CALLS.append("iter")
        return super().__iter__()

    def items(self) -> Any:
        """Note the access."""
        CALLS.append("items")
        return super().items()

    def keys(self) -> Any:
        """Note the access."""
        CALLS.append("keys")
        return super().keys()


class HostileError(Exception):
    """An exception that notes every look."""

    @property
    def __traceback__(self) -> None:  # type: ignore[override]
        CALLS.append("traceback")

    @property
    def __context__(self) -> None:  # type: ignore[override]
        CALLS.append("context")


def test_none_of_the_users_code_runs() -> None:
    tensor = sim.tensor(777)
    hostile = Hostile([tensor])
    hostile_dict = HostileDict(a=hostile)
    hostile_dict[hostile] = tensor
    error = HostileError(hostile)
    variables = {"a": hostile, "b": hostile_dict, "c": error, "d": Hostile, "e": {hostile: 1}}
    CALLS.clear()
    paths = Graph(variables).paths()
    Graph()
    assert CALLS == []
    assert paths[777] == "b[<Hostile>]"


def test_an_instance_whose_class_hides_its_dict_is_looked_into() -> None:
    assert path_to(Hostile([sim.tensor(777)])) == "x.kept[0]"


def test_many_levels_are_no_recursion() -> None:
    nested: list[Any] = [sim.tensor(777)]
    for _ in range(200_000):
        nested = [nested]
    graph = Graph({"x": nested})
    assert not graph.is_cut
    assert graph.n_objects > 200_000
    assert any(storage == ("sim:0", 777) for _, _, storage in graph.nodes)
    # One level at a time: a nested list is freed by recursion, up to a point.
    while len(nested) == 1 and isinstance(nested[0], list):
        nested = nested[0]


class Broken:
    """A class that is not finished."""


def test_objects_that_are_half_made_are_passed() -> None:
    broken = Plain.__new__(Plain)
    empty_cell = types.CellType()
    unbound = Slotted()
    finished = generator(sim.tensor(777))
    list(finished)
    assert path_to([broken, empty_cell, unbound, finished]) is None


def test_a_registered_adapter_is_called() -> None:
    class Buffer:
        def __init__(self, n_bytes: int) -> None:
            self.n_bytes = n_bytes

    class Pool(Buffer):
        """A subclass of a registered class."""

    called = []

    def tell(buffer: Buffer) -> list[tuple[str, int, int]]:
        called.append(buffer)
        return [("npu:0", buffer.n_bytes, 1)]

    register_adapter(Buffer, tell)
    first, second = Buffer(777), Pool(777)
    graph = Graph({"x": {"a": [first]}, "y": second})
    assert {id(it) for it in called} == {id(first), id(second)}
    assert [storage for _, _, storage in graph.nodes if storage] == [("npu:0", 777)]
    assert graph.paths()[777] == "y"
    register_adapter(Buffer, lambda buffer: ("npu:0", buffer.n_bytes))
    storages = [storage for _, _, storage in Graph({"x": first, "y": second}).nodes if storage]
    assert storages == [("npu:0", 777)] * 2


def test_an_adapter_runs_after_cells_only_if_registered_so(shell: Shell) -> None:
    shell.run("import gpumem\nfrom gpumem import sim\nsim.use()\ncalled, kept = [], []")
    shell.run("class Silent: pass\nclass Vocal: pass\nboth = [Silent(), Vocal()]")
    tell = "lambda it: called.append(type(it).__name__) or ('npu:0', 5)"
    shell.run(f"gpumem.register_adapter(Silent, {tell})")
    shell.run(f"gpumem.register_adapter(Vocal, {tell}, after_runs=True)")
    called = shell.user_ns["called"]
    grow = "kept.append(sim.tensor(1 << 20))"
    shell.run(f"%%gpumem\n{grow}")
    assert called == ["Vocal"]
    called.clear()
    shell.run("%%gpumem\ntry:\n    sim.tensor(1 << 40)\nexcept RuntimeError:\n    seen = called[:]")
    assert shell.user_ns["seen"] == []
    called.clear()
    shell.run("gpumem.holders();")
    assert sorted(called) == ["Silent", "Vocal"]
    shell.run("%gpumem why")
    assert sorted(called) == ["Silent", "Silent", "Vocal", "Vocal"]


def test_an_adapter_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Buffer:
        """Nothing in it."""

    register_adapter(Buffer, lambda _: ("npu:0", 1 // 0))
    assert path_to([Buffer(), sim.tensor(777)]) == "x[1]"
    assert "an adapter that you registered failed: ZeroDivisionError" in caplog.text
    with pytest.raises(TypeError, match="an adapter is a function, not 3"):
        register_adapter(Buffer, 3)


class Maker:
    """Makes a random graph of objects that hold each other in every way."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a test draws its graphs again)
        self._n_tensors = 0
        self.made: list[Any] = []
        for _ in range(self._random.randint(5, 60)):
            self.made.append(self._one())
        for _ in range(self._random.randint(0, 20)):
            self._join()

    def _any(self) -> Any:
        if not self.made or self._random.random() < 0.2:
            self._n_tensors += 1
            return sim.tensor(self._n_tensors)
        return self._random.choice(self.made)

    def _one(self) -> Any:
        hashable = self._any()
        try:
            hash(hashable)
        except TypeError:
            hashable = 0
        ways: list[Callable[[], Any]] = [
            lambda: [self._any() for _ in range(3)],
            lambda: {"a": self._any(), 2: self._any()},
            lambda: (self._any(), self._any()),
            lambda: {hashable},
            lambda: {hashable: self._any()},
            lambda: deque([self._any()]),
            lambda: with_attributes(Plain(), one=self._any(), two=self._any()),
            lambda: with_attributes(Slotted(), kept=self._any()),
            lambda: closure(self._any()),
            lambda: default(self._any()),
            lambda: generator(self._any()),
            lambda: failed(self._any()),
            lambda: functools.partial(print, self._any()),
            lambda: weakref.ref(Plain()),
            lambda: iter([self._any()]),
            lambda: type("Made", (), {"kept": self._any()}),
            lambda: types.MethodType(print, [self._any()]),
            lambda: self._random.choice([1, "text", None, print, int]),
        ]
        return self._random.choice(ways)()

    def _join(self) -> None:
        """Close a cycle where something can still be changed."""
        holder, held = self._random.choice(self.made), self._any()
        if isinstance(holder, list | deque):
            holder.append(held)
        elif isinstance(holder, Plain):
            holder.more = held  # type: ignore[attr-defined]
        elif isinstance(holder, dict):
            holder["more"] = held


def reached(start: object) -> set[int]:
    """Return the bytes of the tensors that the collector's own view leads to."""
    closed = {id(module.__dict__) for module in list(sys.modules.values())}
    seen: dict[int, object] = {}
    found = set()
    open_ = [start]
    while open_:
        it = open_.pop()
        if id(it) in seen or id(it) in closed or isinstance(it, types.ModuleType):
            continue
        seen[id(it)] = it
        if isinstance(it, sim.Tensor):
            found.add(it.nbytes)
        if not isinstance(it, type) or it.__module__ == __name__:
            open_ += gc.get_referents(it)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_what_the_collector_sees_is_found_in_random_graphs(seed: int) -> None:
    made = Maker(seed).made
    variables = {f"v{number}": value for number, value in enumerate(made[-8:])}
    graph = Graph(variables)
    assert set(graph.paths()) == reached(list(variables.values()))
    for n_bytes, path in graph.paths().items():
        if "<" not in path and "…" not in path:
            found = eval(path, dict(variables))  # noqa: S307 (a path reads as Python)
            assert found.nbytes == n_bytes, path


@pytest.mark.parametrize("lie", ["null", "misaligned", "freed", "itself"])
@in_process
def test_a_wrong_traverse_does_no_harm(lie: str) -> None:
    with unbelieved():
        lies = Lies()
        graph = Graph({"it": lies.liar(lie)})
        assert [storage for *_, storage in graph.nodes if storage] == [("sim:0", 777)], graph.nodes
        assert not graph.is_cut
        kinds = {it.kind for it in gpumem.holders() if it.device == "sim:0"}
        assert kinds <= {"variable", "module_global", "thread_frame"}, kinds


@in_process
def test_a_traverse_that_never_ends_is_cut_short() -> None:
    with unbelieved():
        lies = Lies()
        shell = open_shell()
        shell.user_ns.update(first=lies.tensor, trap=lies.endless(), sim=sim)
        _gpumem._set_look_patience(4_000)  # the walk ends after half of that
        # A busy machine is late with the answer, or gives up.
        looks: list[Any] = []
        for n in range(4):
            shell.run(f"%%gpumem --quiet\nkept_{n} = sim.tensor(5 << 20)")
            until = time.monotonic() + 20
            while not looks and time.monotonic() < until:
                time.sleep(0.2)
                looks = json.loads(gpumem.report().to_json())["holders"]
        [looked] = looks
        assert looked["is_cut"]
        assert shell.run("1 + 1").result == "2"


TASKS = """
import asyncio, gpumem
from gpumem import sim

async def fetch():
    batch = sim.tensor(5 << 20)
    await asyncio.sleep(100)

async def relay():
    await fetch()

async def numbers():
    row = sim.tensor(7 << 20)
    yield 1

async def done():
    return sim.tensor(9 << 20)

async def main():
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(relay(), name="loader"), loop.create_task(done(), name="done")]
    it = numbers()
    await it.__anext__()
    await asyncio.sleep(0.01)
    result = tasks.pop()
    del tasks
    for root in sorted(gpumem.holders(), key=lambda root: root.n_bytes):
        if root.kind != "system":
            print(root.n_bytes >> 20, root.kind, root.name, root.path, sep=" | ")

asyncio.run(main())
"""


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="asyncio keeps no list of its tasks that can be read"
)
def test_what_waits_in_a_task_is_named_by_it() -> None:
    ran = run_python("-c", TASKS)
    assert (ran.returncode, ran.stderr) == (0, "")
    held = [line.split(" | ") for line in ran.stdout.splitlines()]
    assert held == [
        ["5", "thread_frame", "relay() in loader", "relay() in loader.cr_await.<locals>.batch"],
        ["7", "thread_frame", "it in main()", "main().<locals>.it.<locals>.row"],
        ["9", "thread_frame", "result in main()", "main().<locals>.result.<inside>"],
    ]


def test_what_a_thread_keeps_to_itself_is_found() -> None:
    local = threading.local()
    local.kept = sim.tensor(777)
    path = path_to(local)
    assert path is not None
    assert path.startswith("x.")
    assert path.endswith("['kept']")
