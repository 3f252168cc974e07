"""Where IPython and Python keep what a cell made, each with what gives it back.

Containers that the user fills are in `tests/python/test_paths.py`.
"""

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
        name="what the debugger looked at",
        truth="%debug keeps its stack, also when another error took the traceback's place.",
        setup="import io\nimport sys\n" + FAILS,
        cell="fails()\n# %%\nsys.stdin = io.StringIO('q')\n%debug\n# %%\n1 / 0",
        fix="%gpumem release traceback",
        holder=Holder(".*", "debugger", r"^get_ipython\(\)\.InteractiveTB\.pdb.*batch"),
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
        holder=Holder(r"%run script\.py: table", "run_module", "table"),
    ),
]
