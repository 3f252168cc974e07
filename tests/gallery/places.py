"""Where IPython and Python keep what a cell made, each with what gives it back."""

from __future__ import annotations

from .cases import Holder, Kept

FAILS = """
def fails():
    batch = tensor()
    raise ValueError("planted")
"""

KEPT = [
    Kept(
        name="a displayed value",
        truth="IPython keeps it under _, _N and Out, and in hidden copies of them.",
        cell="tensor()",
        fix="%gpumem release outputs",
        holder=Holder(r"Out.*|_\d*", "output_history"),
    ),
    Kept(
        name="the frames of an exception",
        truth="The last traceback keeps the frames, and these their variables.",
        setup=FAILS,
        cell="fails()",
        fix="%gpumem release traceback",
        holder=Holder(".*", "traceback", "batch"),
    ),
    Kept(
        name="an exception behind another",
        truth="A chained exception has a traceback of its own.",
        setup=FAILS,
        cell="try:\n    fails()\nexcept ValueError as error:\n    raise RuntimeError from error",
        fix="%gpumem release traceback",
        holder=Holder(".*", "traceback", "batch"),
    ),
    Kept(
        name="an exception that was given a name",
        truth="`except … as error` forgets the name at its end; another name does not.",
        setup=FAILS,
        cell="try:\n    fails()\nexcept ValueError as error:\n    kept = error",
        fix="del kept",
        holder=Holder("kept", "variable", "batch"),
    ),
    Kept(
        name="a loop variable",
        truth="It outlives the loop.",
        cell="for batch in [tensor()]:\n    pass",
        fix="del batch",
        holder=Holder("batch", "variable", "^batch$"),
    ),
    Kept(
        name="a with variable",
        truth="It outlives its block.",
        setup="import contextlib",
        cell="with contextlib.nullcontext(tensor()) as opened:\n    pass",
        fix="del opened",
        holder=Holder("opened", "variable", "^opened$"),
    ),
    Kept(
        name="a closure",
        truth="A function keeps the variables of the function around it.",
        setup="""
def make():
    batch = tensor()

    def inner():
        return batch

    return inner
""",
        cell="inner = make()",
        fix="del inner",
        holder=Holder("inner", "variable", "batch"),
    ),
    Kept(
        name="a default argument",
        truth="It is made once and kept with the function.",
        cell="def with_default(batch=tensor()):\n    pass",
        fix="del with_default",
        holder=Holder("with_default", "variable", "with_default.*(default|batch)"),
    ),
    Kept(
        name="a suspended generator",
        truth="Its frame waits with all its variables.",
        setup="def batches():\n    batch = tensor()\n    yield 1\n    del batch",
        cell="waiting = batches()\nnext(waiting);",
        fix="waiting.close()",
        holder=Holder("waiting", "variable", "waiting.*batch"),
    ),
    Kept(
        name="a cache of results",
        truth="lru_cache keeps what it returned.",
        setup="import functools\n\n\n@functools.lru_cache\ndef table(n):\n    return tensor()",
        cell="table(3);",
        fix="table.cache_clear()",
        holder=Holder("table", "variable", "table"),
    ),
    Kept(
        name="the exception of a future",
        truth="A future keeps the exception that it ended with, and so its frames.",
        setup="import concurrent.futures\n" + FAILS,
        cell="""
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    future = pool.submit(fails)
future.exception();
""",
        fix="del future",
        holder=Holder("future", "variable", "future.*batch"),
    ),
    Kept(
        name="a log record with its exception",
        truth="Whoever keeps the record keeps the frames.",
        setup="""
import logging


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


handler = Kept()
logging.getLogger("gallery").propagate = False
logging.getLogger("gallery").handlers = [handler]
"""
        + FAILS,
        cell="""
try:
    fails()
except ValueError:
    logging.getLogger("gallery").exception("noted")
logging.getLogger("gallery").handlers = []
""",
        fix="handler.records.clear()",
        holder=Holder("handler", "variable", "handler.records"),
    ),
    Kept(
        name="an attribute of a function",
        truth="A function is an object, with room for attributes.",
        cell="def step():\n    pass\n\n\nstep.last = tensor()",
        fix="del step.last",
        holder=Holder("step", "variable", r"step\.last"),
    ),
    Kept(
        name="a bound method as callback",
        truth="It keeps its object.",
        setup="""
class Model:
    def __init__(self):
        self.weights = tensor()

    def forward(self):
        return self.weights
""",
        cell="callbacks = [Model().forward]",
        fix="callbacks.clear()",
        holder=Holder("callbacks", "variable", r"callbacks\[0\].*weights"),
    ),
    Kept(
        name="a class attribute",
        truth="It lives as long as the class.",
        cell="class Config:\n    table = tensor()",
        fix="del Config",
        holder=Holder("Config", "variable", r"Config\.table"),
    ),
    Kept(
        name="a set and a tuple",
        truth="Containers inside containers.",
        cell="bag = ({tensor()}, 1)",
        fix="del bag",
        holder=Holder("bag", "variable", r"bag\[0\]"),
    ),
    Kept(
        name="what the debugger looked at",
        truth="%debug keeps its stack, also when another error took the traceback's place.",
        setup="import io\nimport sys\n" + FAILS,
        cell="fails()\n# %%\nsys.stdin = io.StringIO('q')\n%debug\n# %%\n1 / 0",
        fix="%gpumem release traceback",
        holder=Holder(".*", "debugger", "batch"),
    ),
    Kept(
        name="the globals of a script",
        truth="%run keeps the module of the script, also when its names are deleted.",
        setup="""
from pathlib import Path

Path("script.py").write_text("table = get_ipython().user_ns['tensor']()")
""",
        cell="%run script.py\ndel table",
        fix="get_ipython().clear_main_mod_cache()",
        holder=Holder(".*", "run_module", "table"),
    ),
]
