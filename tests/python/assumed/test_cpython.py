"""What gpumem assumes of CPython, beyond its documentation. One test is one assumption."""

from __future__ import annotations

import asyncio
import collections
import ctypes
import functools
import gc
import importlib.util
import inspect
import json
import linecache
import multiprocessing
import multiprocessing.process
import multiprocessing.spawn
import opcode
import os
import pdb  # noqa: T100 (its classes are looked at)
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
import types
import weakref
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

pytestmark = pytest.mark.python

has_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="no sys.monitoring")
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

READ_BY_C = (types.GetSetDescriptorType, types.MemberDescriptorType)
CALLED_BY_C = (
    types.BuiltinFunctionType,
    types.ClassMethodDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
# Of `typeslots.h`, which the stable ABI fixes.
TP_GETATTRO, TP_REPR = 58, 66


def attribute(owner: type, name: str) -> object:
    """Return what stands under a name in a class or the nearest of its bases."""
    return next(vars(base)[name] for base in owner.__mro__ if name in vars(base))


def not_read_by_c(owner: type, *names: str) -> list[str]:
    return [name for name in names if not isinstance(attribute(owner, name), READ_BY_C)]


def leads_to(start: object, target: object, depth: int) -> bool:
    """Whether `depth` steps of `tp_traverse` lead from an object to another."""
    reached = [start]
    for _ in range(depth):
        reached = gc.get_referents(*reached)
        if any(it is target for it in reached):
            return True
    return False


def run(program: str) -> Any:
    """Return what a program in a process of its own prints as JSON."""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(ran.stdout)


def slot(owner: type, number: int) -> int | None:
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    found: int | None = get(owner, number)
    return found


class Plain:
    """An instance with a dict."""

    def __init__(self, kept: object = None) -> None:
        self.kept = kept


class Slotted:
    """An instance with one slot."""

    __slots__ = ("kept",)


def suspended(kept: object) -> Iterator[object]:
    yield kept


@types.coroutine
def pause() -> Iterator[None]:
    yield


async def waits() -> None:
    await pause()


async def steps() -> AsyncIterator[None]:
    await pause()
    yield


# Types and their attributes


def test_flags_of_types_have_their_bits() -> None:
    """`objects/walk/classes.rs` and `objects/still` tell types by these bits."""
    flags = {type_: type_.__flags__ for type_ in (Plain, dict, int, str, bytes)}
    has = {bit: [it for it in flags if flags[it] >> bit & 1] for bit in (9, 12, 14, 27, 28)}
    assert has == {9: [Plain], 12: list(flags), 14: [Plain, dict], 27: [bytes], 28: [str]}


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        # The lineage and the name of a class, past its metaclass: `objects/still`.
        (type, "__mro__ __dict__ __module__ __qualname__"),
        # The C function behind a property: `objects/still`.
        (property, "fget"),
        # What a function holds, and how: `objects/walk/label.rs`.
        (types.FunctionType, "__code__ __closure__ __defaults__ __kwdefaults__ __globals__"),
        (types.MethodType, "__self__ __func__"),
        (types.BuiltinMethodType, "__self__"),
        (types.CellType, "cell_contents"),
        # Names, flags and bytecode: `objects/walk` and `recording/loops`.
        (types.CodeType, "co_flags co_names co_consts co_freevars co_varnames co_argcount co_name"),
        (types.CodeType, "co_code co_filename co_firstlineno"),
        (types.CodeType, "co_qualname" if sys.version_info >= (3, 11) else "co_name"),
        # Frames: `objects/walk/roots/threads.rs` and `recording/loops/stacks.rs`.
        (types.FrameType, "f_back f_code f_globals f_lasti f_lineno f_locals"),
        (types.TracebackType, "tb_next tb_frame"),
        # What awaits what: `objects/walk/native.rs` and `recording/loops/stacks.rs`.
        (types.GeneratorType, "gi_frame gi_yieldfrom"),
        (types.AsyncGeneratorType, "ag_frame ag_await"),
        (types.CoroutineType, "cr_frame cr_await cr_running __name__"),
        # Bounds and what is called: `objects/walk/bound.rs` and `objects/walk/label.rs`.
        (collections.deque, "maxlen"),
        (functools.partial, "func args keywords"),
        # Past the error's class: `recording/oom/chain.rs` and `objects/still`.
        (BaseException, "args __cause__ __context__ __traceback__"),
    ],
)
def test_c_reads(owner: type, names: str) -> None:
    """Whoever reads these attributes runs none of the user's code."""
    assert not_read_by_c(owner, *names.split()) == []


def test_the_proxy_of_a_class_refers_to_its_dict_alone() -> None:
    """`objects/still` finds the attributes of a class by what its `mappingproxy` refers to."""
    (behind,) = gc.get_referents(vars(Plain))
    assert type(behind) is dict
    assert behind["__init__"] is Plain.__init__


def test_a_getter_of_c_refuses_objects_of_other_classes() -> None:
    """`objects/still` calls a descriptor's slot on any object, and relies on its check."""
    for owner, name in ((types.FrameType, "f_back"), (Slotted, "kept"), (type, "__mro__")):
        with pytest.raises(TypeError, match=r"requires|doesn't apply"):
            attribute(owner, name).__get__(3)  # type: ignore[attr-defined]


def test_slots_of_a_class_are_members() -> None:
    """`objects/still` reads what `__slots__` makes, by the type of its descriptors."""
    assert type(vars(Slotted)["kept"]) is types.MemberDescriptorType


def test_c_is_behind_a_call_that_is_a_slot_wrapper() -> None:
    """`objects/still` tells functions of C by the class of their `__call__`."""
    of_python = (types.FunctionType, types.MethodType)
    for type_ in (*CALLED_BY_C, *of_python):
        assert type(attribute(type_, "__call__")) is types.WrapperDescriptorType
    # Their names distinguish them.
    assert [type_.__name__ for type_ in of_python] == ["function", "method"]

    class OfPython:
        def __call__(self) -> None: ...

    assert type(attribute(OfPython, "__call__")) is types.FunctionType


def test_functions_of_c_have_no_dict() -> None:
    """`objects/still` refuses to call what has room for attributes of its own."""
    functions = (len, list.append, int.__add__, vars(dict)["fromkeys"])
    assert [it for it in functions if hasattr(it, "__dict__")] == []
    assert hasattr(Plain.__init__, "__dict__")


def test_static_classes_are_not_traversed() -> None:
    """`objects/walk/heap.rs` asks `tp_is_gc` of each class, as the collector does."""
    assert gc.is_tracked(Plain)
    assert not gc.is_tracked(int)


def test_a_lazy_module_looks_up_attributes_in_python() -> None:
    """`base/slots.rs` leaves modules alone whose `tp_getattro` is not that of C."""
    lazy = importlib.util._LazyModule  # type: ignore[attr-defined]
    plain = (slot(types.ModuleType, TP_GETATTRO), slot(object, TP_GETATTRO))
    assert slot(lazy, TP_GETATTRO) not in plain
    assert slot(types.SimpleNamespace, TP_GETATTRO) in plain


# What objects tell the collector


def test_an_instance_refers_to_its_class_and_attributes() -> None:
    """`objects/walk/heap.rs` follows instances by `tp_traverse` alone."""
    kept = Slotted()
    assert leads_to(Plain(kept), Plain, 1)
    assert leads_to(Plain(kept), kept, 2)


def test_the_dict_of_an_instance_is_made_once() -> None:
    """`objects/still` asks `PyObject_GenericGetDict`, also if a class hides `__dict__`."""

    class Hides(Plain):
        __dict__ = None  # type: ignore[assignment]

    generic = ctypes.pythonapi.PyObject_GenericGetDict
    generic.restype, generic.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    hides = Hides(3)
    assert generic(hides, None) == {"kept": 3}
    assert generic(hides, None) is generic(hides, None)


@pytest.mark.parametrize(
    ("make", "depth"),
    [
        pytest.param(lambda kept: collections.deque([kept]), 1, id="deque"),
        pytest.param(lambda kept: functools.partial(print, kept), 2, id="partial"),
        pytest.param(lambda kept: (lambda: kept).__closure__[0], 1, id="cell"),  # type: ignore[index]
        pytest.param(lambda kept: lambda: kept, 3, id="closure"),
        pytest.param(lambda kept: lambda it=kept: it, 2, id="default"),
        pytest.param(lambda kept: Plain(kept).__init__, 3, id="method"),  # type: ignore[misc]
        pytest.param(ValueError, 2, id="error"),
        pytest.param(lambda kept: {3: kept}.values(), 2, id="view"),
        pytest.param(lambda kept: iter([kept]), 2, id="iterator"),
        pytest.param(lambda kept: types.SimpleNamespace(kept=kept), 2, id="namespace"),
    ],
)
def test_tp_traverse_leads_to_what_is_kept(make: Callable[[Any], object], depth: int) -> None:
    """`objects/walk/heap.rs` has no other way through CPython's own objects."""
    kept = Slotted()
    assert leads_to(make(kept), kept, depth)


def test_a_cache_of_results_leads_to_its_results() -> None:
    """`objects/walk/native.rs` finds what `functools.lru_cache` keeps in no attribute."""
    kept = Slotted()
    cached = functools.lru_cache(maxsize=2)(lambda _: kept)
    assert not leads_to(cached, kept, 1)
    cached(3)
    assert leads_to(cached, kept, 1)


def test_a_generator_that_waits_leads_to_its_locals() -> None:
    """`objects/walk/heap.rs` finds what is held in suspended code."""
    kept = Slotted()
    generator = suspended(kept)
    next(generator)
    assert leads_to(generator, kept, 3)


def test_what_steps_a_coroutine_refers_to_it() -> None:
    """`recording/loops/stacks.rs` follows such wrappers, which have no attribute for it."""
    coroutine, generator = waits(), steps()
    assert leads_to(coroutine.__await__(), coroutine, 1)
    step = generator.__anext__()
    assert leads_to(step, generator, 1)
    coroutine.close()
    step.close()  # type: ignore[attr-defined]


def test_a_list_of_all_objects_refers_once_to_each() -> None:
    """`objects/walk/garbage.rs` subtracts that one reference from each count."""
    kept = Plain()
    before = sys.getrefcount(kept)
    tracked = gc.get_objects()
    assert type(tracked) is list
    assert sys.getrefcount(kept) == before + 1
    assert sum(it is kept for it in tracked) == 1


def test_disabling_the_collector_says_if_it_was_on() -> None:
    """`objects/still` puts the collector back as it was."""
    was_enabled = gc.isenabled()
    gc.enable()
    assert ctypes.pythonapi.PyGC_Disable() == 1
    assert ctypes.pythonapi.PyGC_Disable() == 0
    assert not gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()


# Functions, code and frames


def test_the_classes_of_running_code_are_static_and_final() -> None:
    """`objects/walk/native.rs` knows these classes by their addresses."""
    finals = (
        types.FunctionType,
        types.CellType,
        types.FrameType,
        types.TracebackType,
        types.GeneratorType,
        types.CoroutineType,
        types.AsyncGeneratorType,
        types.CodeType,
    )
    for final in finals:
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Sub", (final,), {})


def test_an_empty_cell_has_no_contents() -> None:
    """`objects/walk/label.rs` takes the error for an empty cell."""
    with pytest.raises(ValueError, match="empty"):
        _ = types.CellType().cell_contents


def test_only_a_function_has_locals_of_its_own() -> None:
    """`objects/walk/native.rs` asks for locals if `CO_OPTIMIZED`, the lowest flag, is set."""
    assert suspended.__code__.co_flags & 1
    assert not compile("x = 1", "", "exec").co_flags & 1
    assert inspect.CO_OPTIMIZED == 1


def test_code_that_is_no_function_has_a_name_in_brackets() -> None:
    """`objects/walk/roots/fillers.rs` tells a cell from a function by its name."""
    assert compile("x = 1", "", "exec").co_name == "<module>"
    assert (lambda: 0).__code__.co_name == "<lambda>"


def test_locals_of_a_frame_are_a_view_since_3_13() -> None:
    """`objects/walk/native.rs` asks for them in the user's own process from then on."""
    frame = sys._getframe()
    if sys.version_info < (3, 13):
        assert type(frame.f_locals) is dict
        assert frame.f_locals is frame.f_locals
    else:
        assert type(frame.f_locals).__name__ == "FrameLocalsProxy"
        assert frame.f_locals is not frame.f_locals


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="a view keeps nothing")
def test_a_frame_refers_to_the_dict_of_its_locals() -> None:
    """`objects/still` keeps alive what that dict holds, before it is refreshed."""

    def make() -> types.FrameType:
        return sys._getframe()

    frame = make()
    snapshot = frame.f_locals
    assert leads_to(frame, snapshot, 1)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="locals are a dict")
def test_items_of_the_view_of_locals_are_pairs_in_a_list() -> None:
    """`objects/walk/native.rs` calls that method, which is C code."""
    kept = Slotted()
    view: Any = sys._getframe().f_locals
    assert isinstance(attribute(type(view), "items"), types.MethodDescriptorType)
    items = view.items()
    assert type(items) is list
    assert ("kept", kept) in items


def test_f_lasti_counts_bytes_of_the_code() -> None:
    """`recording/loops/stacks.rs` compares it with offsets in `co_code`."""
    frame = sys._getframe()
    offset, expected = frame.f_lasti, frame.f_lineno
    assert offset % 2 == 0
    (line,) = {it for first, end, it in frame.f_code.co_lines() if first <= offset < end}
    assert line == expected


def test_lines_of_code_are_ranges_of_offsets() -> None:
    """`recording/loops/bytecode.rs` and `recording/trace/modules.rs` read them as triples."""
    for first, end, line in suspended.__code__.co_lines():
        assert (first % 2, end % 2) == (0, 0)
        assert line is None or line >= suspended.__code__.co_firstlineno


def test_some_attributes_raise_an_audit_event() -> None:
    """`objects/walk/label.rs` reads these in a copied process alone, and all others anywhere."""
    heard = run(
        """
import json, sys
def outer(kept):
    def inner(it=3, *, by=4): return kept
    return inner
def generate(): yield
async def wait(): pass
try: 1 / 0
except ZeroDivisionError as error: traceback = error.__traceback__
generator, coroutine, function = generate(), wait(), outer(3)
objects = [
    (function, "__code__ __defaults__ __kwdefaults__ __closure__ __globals__"),
    (function.__closure__[0], "cell_contents"),
    (traceback, "tb_next tb_frame"),
    (generator, "gi_frame gi_yieldfrom"),
    (coroutine, "cr_frame cr_await cr_running __name__"),
    (sys._getframe(), "f_back f_globals f_lasti f_locals"),
    (function.__code__, "co_flags co_name co_consts co_names co_varnames co_freevars"),
]
heard = []
def hook(event, args):
    if event == "object.__getattr__": heard.append(args[1])
sys.addaudithook(hook)
for owner, names in objects:
    for name in names.split(): getattr(owner, name)
coroutine.close()
print(json.dumps(heard))
"""
    )
    frames = ["tb_frame", "gi_frame", "cr_frame"]
    assert heard == ["__code__", "__defaults__", "__kwdefaults__", *frames]


# Containers that have a bound


def test_a_cache_of_results_keeps_its_size_in_a_closure() -> None:
    """`objects/walk/bound.rs` finds `maxsize` as the first variable of `cache_parameters`."""
    cached = functools.lru_cache(maxsize=7)(len)
    assert type(cached) is functools._lru_cache_wrapper
    parameters = vars(cached)["cache_parameters"]
    assert parameters.__closure__[0].cell_contents == 7


def test_a_cache_with_a_bound_has_a_link_for_each_result() -> None:
    """`objects/walk/bound.rs` counts results by the dict whose values are `_lru_list_elem`."""
    cached = functools.lru_cache(maxsize=7)(lambda it: {"result": it})
    for key in range(3):
        cached(key)
    dicts = [it for it in gc.get_referents(cached) if type(it) is dict]
    classes = [{type(value).__name__ for value in it.values()} for it in dicts]
    assert [len(it) for it, of in zip(dicts, classes, strict=True) if of == {"_lru_list_elem"}] == [
        3
    ]


def test_queues_keep_their_size_and_items_as_attributes() -> None:
    """`objects/walk/bound.rs` reads them past the queue's class."""
    for of_threads, inside in (
        (queue.Queue, collections.deque),
        (queue.LifoQueue, list),
        (queue.PriorityQueue, list),
    ):
        own = vars(of_threads(3))
        assert (own["maxsize"], type(own["queue"])) == (3, inside)
        assert of_threads.__module__ == "queue"
    own = vars(asyncio.Queue(3))
    assert (own["_maxsize"], type(own["_queue"])) == (3, collections.deque)
    assert asyncio.Queue.__module__ == "asyncio.queues"


def test_bytes_and_texts_lie_inside_their_object() -> None:
    """`objects/adapters/buffers.rs` takes the object's address for that of its data."""
    data, text = b"x" * 5000, "x" * 5000
    for value, raw in ((data, data), (text, text.encode())):
        inside = ctypes.string_at(id(value), value.__sizeof__())
        assert raw in inside


def test_c_measures_bytes_texts_and_arrays() -> None:
    """`objects/adapters/buffers.rs` calls `__sizeof__`, if that is C code."""
    for type_ in (bytes, bytearray, str, array):
        assert isinstance(attribute(type_, "__sizeof__"), types.MethodDescriptorType)


def test_text_of_strings_and_floats_comes_from_their_slot() -> None:
    """`objects/still` calls `tp_repr` itself: `repr()` would handle signals."""
    for value in ("it's", 0.1, 1e300, float("nan")):
        represent = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
            slot(type(value), TP_REPR)
        )
        assert represent(value) == repr(value)


# Errors


def test_a_group_keeps_its_errors_as_second_argument() -> None:
    """`recording/oom/chain.rs` finds them there, also in the package for Python 3.10."""
    if sys.version_info >= (3, 11):
        group: Any = ExceptionGroup  # noqa: F821 (of newer Pythons)
        module = "builtins"
    else:
        backport = pytest.importorskip("exceptiongroup")
        group = backport.ExceptionGroup
        module = backport.BaseExceptionGroup.__module__
        assert module in {"exceptiongroup", "exceptiongroup._exceptions"}
    error = ValueError(3)
    assert list(group("several", [error]).args[1]) == [error]
    base = next(it for it in group.__mro__ if it.__name__ == "BaseExceptionGroup")
    assert base.__module__ == module


def test_sys_keeps_the_last_error() -> None:
    """`objects/walk/roots/ipython.rs` looks in `sys` under these names."""
    kept = run(
        """
import code, json, sys
code.InteractiveInterpreter().runsource("1 / 0")
print(json.dumps([name for name in ("last_exc", "last_value", "last_traceback")
                  if getattr(sys, name, None) is not None]))
"""
    )
    since_3_12 = ["last_exc"] if sys.version_info >= (3, 12) else []
    assert kept == [*since_3_12, "last_value", "last_traceback"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no such variables")
def test_the_debugger_keeps_variables_in_a_frames_globals() -> None:
    """`gpumem/_retention.py` frees them there."""
    names: dict[str, Any] = {}
    exec("import sys\nframe = sys._getframe()", names)  # noqa: S102 (a frame with globals)
    pdb.Pdb().set_convenience_variable(names["frame"], "_frame", 3)  # type: ignore[attr-defined]
    assert names["__pdb_convenience_variables"] == {"_frame": 3}


def test_a_debugger_keeps_frames_under_these_names() -> None:
    """`gpumem/_retention.py` empties them."""
    debugger = pdb.Pdb()
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        debugger.reset()
        debugger.setup(error.__traceback__.tb_frame, error.__traceback__)
    own = {"botframe", "stopframe", "stack", "curframe"}
    if sys.version_info >= (3, 13):
        own.add("_chained_exceptions")
    else:
        own.add("curframe_locals")
    assert own <= vars(debugger).keys()
    assert debugger.stack
    debugger.forget()
    assert not debugger.stack


def test_line_cache_has_lines_in_third_place() -> None:
    """`recording/trace/cells.rs` counts the lines of a cell as compiled."""
    linecache.getlines(__file__)
    entry: Any = linecache.cache[__file__]
    lines = entry[2]
    assert lines == Path(__file__).read_text().splitlines(keepends=True)


# Modules


def test_the_interpreter_keeps_sys_modules() -> None:
    """`objects/still` asks C for it, whatever `sys.modules` is."""
    modules = ctypes.pythonapi.PyImport_GetModuleDict
    modules.restype = ctypes.c_void_p
    assert modules() == id(sys.modules)


def test_the_standard_library_lies_beside_os() -> None:
    """`objects/walk/roots/modules.rs` tells the user's modules from Python's by their folder."""
    folder = Path(os.__file__).parent
    assert folder == Path(sysconfig.get_paths()["stdlib"])
    for module in (asyncio, functools, queue):
        file = module.__file__
        assert file is not None
        assert Path(file).is_relative_to(folder)


# Threads, tasks and signals


def test_current_frames_are_a_dict_by_thread() -> None:
    """`objects/walk/roots/threads.rs` reads the innermost frame of each thread."""
    frames = sys._current_frames()
    assert type(frames) is dict
    assert frames[threading.get_ident()] is sys._getframe()


def test_threads_have_the_number_that_c_gives_them() -> None:
    """`objects/walk/roots/threads.rs` finds its own thread by it."""
    ident = ctypes.pythonapi.PyThread_get_thread_ident
    ident.restype = ctypes.c_ulong
    assert ident() == threading.get_ident() == threading.current_thread().ident


def test_threading_keeps_active_threads_by_number() -> None:
    """`objects/walk/roots/threads.rs` and `recording/loops/stacks.rs` read names and numbers."""
    active = threading._active  # type: ignore[attr-defined]
    assert type(active) is dict
    thread = active[threading.get_ident()]
    assert thread is threading.current_thread()
    assert vars(thread)["_name"] == thread.name


async def registered() -> list[object]:
    """Return the tasks that asyncio's registries have."""
    tasks: Any = asyncio.tasks
    found = []
    for name in ("_all_tasks", "_scheduled_tasks"):
        registry = getattr(tasks, name, None)
        kept = None if registry is None else vars(registry).get("data")
        if kept is not None:
            assert type(kept) is set
            found += [it() for it in kept if isinstance(it, weakref.ref)]
    return found


def test_asyncio_registers_tasks_in_a_weak_set_before_3_14() -> None:
    """`objects/walk/roots/tasks.rs` reads its `data`, under another name since 3.12."""

    async def main() -> bool:
        return asyncio.current_task() in await registered()

    assert asyncio.run(main()) == (sys.version_info < (3, 14))
    assert hasattr(asyncio.tasks, "_scheduled_tasks") == (sys.version_info >= (3, 12))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="C keeps the current task")
def test_asyncio_keeps_the_current_task_of_a_loop_in_a_dict() -> None:
    """`objects/walk/roots/tasks.rs` passes over the event loops that are its keys."""

    async def main() -> bool:
        current: Any = asyncio.tasks._current_tasks  # type: ignore[attr-defined]
        return type(current) is dict and asyncio.get_running_loop() in current

    assert asyncio.run(main())


def test_c_gives_what_a_task_waits_in() -> None:
    """`objects/walk/roots/tasks.rs` asks tasks without running Python code."""
    for name in ("done", "get_coro", "get_name"):
        assert isinstance(attribute(asyncio.Task, name), types.MethodDescriptorType)
    assert not_read_by_c(asyncio.Task, "_loop") == []


def test_a_task_can_be_referred_to_weakly() -> None:
    """`ipython/extension/cells.rs` notices the end of a cell's task so."""

    async def main() -> bool:
        task = asyncio.current_task()
        assert task is not None
        return weakref.ref(task)() is task

    assert asyncio.run(main())


def test_asyncio_says_whether_a_loop_runs_here() -> None:
    """`base/strand.rs` and `ipython/late_line.rs` ask the two modules."""

    async def main() -> bool:
        running = asyncio.get_running_loop()
        events: Any = asyncio.events
        return running is asyncio._get_running_loop() is events._get_running_loop()

    assert asyncio._get_running_loop() is None
    assert asyncio.run(main())


def test_the_module_behind_signal_has_the_usual_handler() -> None:
    """`base/interrupt.rs` sets handlers past `signal`, and knows Python's own by identity."""
    _signal: Any = sys.modules["_signal"]
    assert _signal.default_int_handler is signal.default_int_handler
    for name in ("signal", "getsignal"):
        assert isinstance(getattr(_signal, name), types.BuiltinFunctionType)
    assert int(signal.SIGINT) == 2


def test_setting_a_handler_runs_the_old_one_if_one_is_pending() -> None:
    """`base/interrupt.rs` counts on a pending Ctrl-C being raised there."""
    heard = run(
        """
import _signal, ctypes, json
heard = []
_signal.signal(2, lambda *_: heard.append("first"))
make_pending = ctypes.pythonapi.PyErr_SetInterruptEx
make_pending(2)
_signal.signal(2, lambda *_: heard.append("second"))
print(json.dumps(heard))
"""
    )
    assert heard == ["first"]


def test_a_pending_call_is_made_between_two_instructions() -> None:
    """`base/threads.rs` resumes its threads in one."""
    called = []

    def note(_: object) -> int:
        called.append(threading.current_thread())
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(note)
    assert ctypes.pythonapi.Py_AddPendingCall(callback, None) == 0
    for _ in range(100):
        pass
    assert called == [threading.main_thread()]


@can_fork
@pytest.mark.skipif(sys.version_info < (3, 12), reason="no such warning")
def test_a_fork_counts_threads_after_its_handlers() -> None:
    """`base/threads.rs` ends its threads before, and starts them later than these."""
    n_warnings = run(
        """
import json, os, threading, time, warnings
def fork():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pid = os.fork()
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
    return len(caught)
leave = threading.Event()
def start():
    leave.clear()
    threading.Thread(target=leave.wait).start()
def stop():
    leave.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread(): thread.join()
    # Python counts the system's threads: one that was waited for may be there for a moment.
    while os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.001)
start()
n_warnings = [fork()]
os.register_at_fork(before=stop)
n_warnings.append(fork())
os.register_at_fork(after_in_parent=start)
n_warnings.append(fork())
leave.set()
print(json.dumps(n_warnings))
"""
    )
    # Some of 3.12 count between the two.
    assert n_warnings in ([1, 0, 1], [1, 0, 0] if sys.version_info < (3, 13) else [])


# Processes of multiprocessing


def test_multiprocessing_keeps_its_processes_and_their_ends() -> None:
    """`gpumem/_processes.py` reads exit codes without waiting for a child."""
    context: Any = multiprocessing.get_context("spawn")
    process = context.Process(target=len)
    dangling: Any = multiprocessing.process._dangling  # type: ignore[attr-defined]
    assert process in list(dangling)
    own = vars(process)
    assert (own["_popen"], own["_target"], own["_args"]) == (None, len, ())


@can_fork
def test_a_child_of_multiprocessing_has_a_pid_and_a_code() -> None:
    """`gpumem/_processes.py` reads them of what `_popen` is."""
    codes = run(
        """
import json, multiprocessing
process = multiprocessing.get_context("fork").Process(target=len)
process.start()
process.join()
print(json.dumps([process._popen.pid == process.pid, process._popen.returncode]))
"""
    )
    assert codes == [True, 1]


@can_fork
def test_multiprocessing_calls_back_once_a_fork_has_its_name() -> None:
    """`gpumem/_processes.py` begins then, and ends by a finalizer of the lowest priority."""
    heard = run(
        """
import json, multiprocessing, multiprocessing.util as util, os
reader, writer = os.pipe()
class Anchor: pass
anchor = Anchor()
def begin(_):
    os.write(writer, (multiprocessing.current_process().name + " begins,").encode())
    util.Finalize(None, lambda: os.write(writer, b"ends"), exitpriority=-1000)
util.register_after_fork(anchor, begin)
work = lambda: os.write(writer, b"works,")
process = multiprocessing.get_context("fork").Process(target=work, name="child")
process.start()
process.join()
print(json.dumps(os.read(reader, 100).decode()))
"""
    )
    assert heard == "child begins,works,ends"


def test_the_first_process_is_called_so() -> None:
    """`gpumem/_processes.py` tells children by their name."""
    assert run(
        "import json, multiprocessing as it; print(json.dumps(it.current_process().name))"
    ) == ("MainProcess")


def test_command_lines_say_that_multiprocessing_began() -> None:
    """`gpumem/_processes.py` looks for these words in `sys.orig_argv`."""
    assert "--multiprocessing-fork" in multiprocessing.spawn.get_command_line()


@can_fork
def test_command_line_of_a_fork_server_names_its_module() -> None:
    """`gpumem/_processes.py` looks for it in `sys.orig_argv`, which its children share."""
    program = """
import json, multiprocessing, sys
context = multiprocessing.get_context("forkserver")
code = "import json, sys; print(json.dumps(sys.orig_argv))"
process = context.Process(target=exec, args=(code,))
process.start()
process.join()
"""
    assert any("multiprocessing.forkserver" in word for word in run(program))


# Bytecode and `sys.monitoring`


def jumps(function: Callable[..., object]) -> list[tuple[int, int]]:
    """Return from where to where `JUMP_BACKWARD` leads, as `core/process` reads it."""
    code = function.__code__.co_code
    found, extended = [], 0
    for offset in range(0, len(code), 2):
        argument = extended | code[offset + 1]
        extended = argument << 8 if code[offset] == opcode.opmap["EXTENDED_ARG"] else 0
        if code[offset] == opcode.opmap["JUMP_BACKWARD"]:
            end = offset + 2
            while code[end] == 0:
                end += 2
            found.append((offset, end - 2 * argument))
    return found


def name_at(function: Callable[..., object], offset: int) -> str:
    return opcode.opname[function.__code__.co_code[offset]]


def is_cleanup(function: Callable[..., object], jump: int) -> bool:
    """Whether it is where an `await` goes on to which an error was thrown: in Python 3.12."""
    is_after_throw = name_at(function, jump - 2) == "CLEANUP_THROW"
    assert not is_after_throw or sys.version_info < (3, 13)
    return is_after_throw


def for_loop(items: Any) -> None:
    for item in items:
        print(item)


def while_loop(n: int) -> None:
    while n:
        if n % 2:
            continue
        print(n)


def handled_loop(items: Any) -> None:
    for item in items:
        try:
            print(item)
        except ValueError:  # noqa: PERF203 (the code that is looked at)
            print()


async def async_loop(items: Any) -> None:
    async for item in items:
        print(item)


@has_monitoring
def test_instructions_have_these_names_and_one_byte() -> None:
    """`core/process/src/bytecode.rs` looks them up; if one is missing, no loop is counted."""
    names = ("JUMP_BACKWARD", "EXTENDED_ARG", "PUSH_EXC_INFO", "FOR_ITER", "GET_ANEXT")
    assert [name for name in names if not 0 < opcode.opmap.get(name, 256) < 256] == []
    assert opcode.opmap["CACHE"] == 0


@has_monitoring
def test_a_jump_counts_words_back_from_behind_its_caches() -> None:
    """`core/process/src/bytecode.rs` finds the head of a loop so."""
    for loop, name in ((for_loop, "FOR_ITER"), (async_loop, "GET_ANEXT")):
        (head,) = {head for jump, head in jumps(loop) if not is_cleanup(loop, jump)}
        assert name_at(loop, head) == name


@has_monitoring
def test_a_while_has_two_heads_or_one_on_one_line() -> None:
    """`core/process/src/bytecode.rs` takes two tests of one line for one loop."""
    heads = {head for _, head in jumps(while_loop)}
    assert 1 <= len(heads) <= 2
    first_line = while_loop.__code__.co_firstlineno
    lines = [
        min(it for a, b, it in while_loop.__code__.co_lines() if it and a <= jump and b > head)
        for jump, head in jumps(while_loop)
    ]
    assert set(lines) == {first_line + 1}


@has_monitoring
def test_handlers_stand_behind_all_other_code() -> None:
    """`core/process/src/bytecode.rs` takes jumps from there for no loop."""
    code = handled_loop.__code__.co_code
    behind = code[::2].index(opcode.opmap["PUSH_EXC_INFO"]) * 2
    lines = [line for first, _, line in handled_loop.__code__.co_lines() if first < behind]
    first_line = handled_loop.__code__.co_firstlineno
    assert max(line for line in lines if line) == first_line + 3
    assert [jump > behind for jump, _ in jumps(handled_loop)] == [False, True]


@has_monitoring
def test_await_repeats_by_a_jump_of_another_name() -> None:
    """`core/process/src/bytecode.rs` would take it for a loop."""
    assert [jump for jump, _ in jumps(waits) if not is_cleanup(waits, jump)] == []
    assert opcode.opmap["JUMP_BACKWARD_NO_INTERRUPT"] in waits.__code__.co_code[::2]


@has_monitoring
def test_functions_of_monitoring_are_c_code() -> None:
    """`recording/loops/tool.rs` calls them, and takes others for replaced ones."""
    names = "get_tool use_tool_id free_tool_id register_callback set_local_events"
    found = [getattr(sys.monitoring, name) for name in names.split()]  # type: ignore[attr-defined]
    assert {type(it) for it in found} == {types.BuiltinFunctionType}


@has_monitoring
def test_three_ids_of_tools_are_for_nobody_in_particular() -> None:
    """`recording/loops/tool.rs` takes 5, 4 or 3, and `gpumem/_history.py` 3 or 4."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    taken = (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, monitoring.PROFILER_ID)
    assert (taken, monitoring.OPTIMIZER_ID) == ((0, 1, 2), 5)
    monitoring.use_tool_id(4, "test")
    assert monitoring.get_tool(4) == "test"
    monitoring.free_tool_id(4)
    assert monitoring.get_tool(4) is None


def events_of(function: Callable[[], object], others: list[Callable[[], object]]) -> list[Any]:
    """Return the calls and jumps of one function while others run, too."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    events, heard = monitoring.events, []
    tool = next(it for it in (3, 4) if monitoring.get_tool(it) is None)
    monitoring.use_tool_id(tool, "test")
    try:
        for event in (events.JUMP, events.PY_START):
            monitoring.register_callback(tool, event, lambda *arguments: heard.append(arguments))
        both = events.JUMP | events.PY_START
        monitoring.set_local_events(tool, function.__code__, both)
        for run in (function, *others):
            run()
        monitoring.set_local_events(tool, function.__code__, events.NO_EVENTS)
        function()
    finally:
        for event in (events.JUMP, events.PY_START):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    return heard


def three_turns() -> None:
    for _ in (1, 2, 3):
        pass


def four_turns() -> None:
    for _ in (1, 2, 3, 4):
        pass


@has_monitoring
def test_events_of_one_code_tell_where_each_jump_leads() -> None:
    """`recording/loops/count.rs` counts jumps to a head, and calls, of that code alone."""
    ((jump, head),) = jumps(three_turns)
    code = three_turns.__code__
    called, *jumped = events_of(three_turns, [four_turns])
    assert called[0] is code
    assert jumped == [(code, jump, head)] * 3


@has_monitoring
def test_a_callback_can_disable_one_place() -> None:
    """`recording/loops/count.rs` and `gpumem/_history.py` return `DISABLE`."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    heard = []

    def called(code: types.CodeType, _offset: int) -> object:
        heard.append(code)
        return monitoring.DISABLE

    start = monitoring.events.PY_START
    monitoring.use_tool_id(4, "test")
    try:
        monitoring.register_callback(4, start, called)
        monitoring.set_local_events(4, three_turns.__code__, start)
        three_turns()
        three_turns()
        monitoring.set_local_events(4, three_turns.__code__, monitoring.events.NO_EVENTS)
    finally:
        monitoring.register_callback(4, start, None)
        monitoring.free_tool_id(4)
    assert heard == [three_turns.__code__]


def test_a_build_says_whether_it_has_a_gil() -> None:
    """`base/gil.rs` has the heap read with the GIL alone."""
    assert bool(sysconfig.get_config_var("Py_GIL_DISABLED")) == ("t" in sys.abiflags)
