"""Threads of the user's that allocate and free beside cells that grow."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from .conftest import Step

if TYPE_CHECKING:
    from .conftest import Notebook

SECONDS = 3

PREFETCH = """
import queue, threading

class Layer:
    def __init__(self):
        self.weight = sim.tensor(1 << 20, requires_grad=True)

class Batch:
    def __init__(self, n):
        self.inputs = [sim.tensor(512) for _ in range(n)]
        self.targets = {i: sim.tensor(512) for i in range(n)}

model = [Layer() for _ in range(8)]
batches = queue.Queue(maxsize=16)
is_over = False
results = {"raised": []}

def prefetch():
    while not is_over:
        try:
            batches.put(Batch(64), timeout=0.1)
        except queue.Full:
            pass

def consume():
    while not is_over:
        try:
            batches.get(timeout=0.1)
        except queue.Empty:
            pass

threads = [threading.Thread(target=prefetch), threading.Thread(target=consume)]
for thread in threads:
    thread.start()
losses = []
"""

REPLACED = """
import random, sys, threading

class Slot:
    __slots__ = ("tensor", "parts")

class Node:
    def __init__(self, n):
        self.slots = [Slot() for _ in range(n)]
        for slot in self.slots:
            slot.tensor = random.choice(pool)
            slot.parts = {"kept": [slot.tensor, (slot.tensor,)]}

pool = [sim.tensor(4096) for _ in range(64)]
nodes = {}
is_over = False

def replace(k):
    while not is_over:
        nodes[k] = Node(300)
        classes = [type(f"Made{i}", (), {"__slots__": ("tensor",)}) for i in range(3)]
        nodes[k, "made"] = [made() for made in classes]
        for instance in nodes[k, "made"]:
            instance.tensor = pool[0]
        if random.random() < 0.3:
            nodes.pop((k, "made"), None)

threads = [threading.Thread(target=replace, args=(k,)) for k in range(3)]
for thread in threads:
    thread.start()
kept = []
"""

JOINED = """
is_over = True
for thread in threads:
    thread.join()
"""

TASKS = """
import asyncio, threading

is_under_way = threading.Event()
is_over = False

async def child():
    while not is_over:
        await asyncio.sleep(0.01)

async def tasks():
    children = [asyncio.create_task(child()) for _ in range(5)]
    await asyncio.sleep(0)
    is_under_way.set()
    await asyncio.gather(*children)

threads = [threading.Thread(target=asyncio.run, args=(tasks(),))]
threads[0].start()
is_under_way.wait()
leak = []
"""

SETS_OF_TASKS = """
import asyncio, sys, threading

is_over = False

async def short():
    await asyncio.sleep(0)

async def tasks():
    while not is_over:
        await asyncio.gather(*[asyncio.create_task(short()) for _ in range(200)])

threads = [threading.Thread(target=asyncio.run, args=(tasks(),))]
threads[0].start()
leak = []
"""


def test_a_producer_and_a_consumer_beside_a_list_that_grows(notebook: Notebook) -> None:
    appended = Step("losses.append(model[0].weight + 1)", times=20, seconds=SECONDS)
    notebook.survives_looks(PREFETCH, appended, JOINED, holder="losses")


@pytest.mark.parametrize("switch_seconds", [0.005, 1e-5])
def test_threads_that_replace_what_leads_to_tensors(
    notebook: Notebook, switch_seconds: float
) -> None:
    switched = f"import sys; sys.setswitchinterval({switch_seconds})"
    grown = "kept.append(sim.tensor(1 << 20)); slot = Slot(); slot.tensor = kept[-1]"
    repeated = Step(grown, times=20, seconds=SECONDS)
    notebook.survives_looks(switched, REPLACED, repeated, JOINED, holder="kept")


@pytest.mark.parametrize("tasks", [TASKS, SETS_OF_TASKS], ids=["waiting", "coming and going"])
def test_tasks_of_another_thread_beside_the_first_cells(notebook: Notebook, tasks: str) -> None:
    grown = Step("leak.append(sim.tensor(8 << 20))", times=20)
    notebook.survives_looks(tasks, grown, JOINED, holder="leak")


def test_threads_of_a_function_that_a_cell_starts_and_joins(notebook: Notebook) -> None:
    cell = textwrap.dedent("""
        from concurrent.futures import ThreadPoolExecutor
        def work(n):
            parts = [{"part": [sim.tensor(512)]} for _ in range(n)]
            return len(parts)
        kept = globals().get("kept", [])
        with ThreadPoolExecutor(4) as pool:
            kept.append((sim.tensor(4 << 20), sum(pool.map(work, [50] * 40))))
    """)
    counted = "results = [n for _, n in kept]"
    assert notebook.is_left_alone(Step(cell, times=20), counted) == [2000] * 20


# A walk that takes longer than the thread whose block it is of.
BRIEF = """
import threading
import gpumem
heap, leak = [{n: [n]} for n in range(200_000)], []

def keep():
    with gpumem.record("brief"):
        leak.append(sim.tensor(8 << 20))

def keep_in_thread():
    thread = threading.Thread(target=keep)
    thread.start()
    thread.join()
"""


def test_a_look_outlives_the_thread_that_began_it(notebook: Notebook) -> None:
    ended = notebook.survives_looks(BRIEF, Step("keep_in_thread()", times=4), holder="leak")
    assert ended.log == []
