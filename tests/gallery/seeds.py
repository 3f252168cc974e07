"""The leaks of the texts that gpumem began with, and what is true of each.

The texts are a documentation page on leak detection, an article on leaks in training, and
an answer on leaks in inference.
"""

from __future__ import annotations

from .cases import SIZE, Growing, Healthy, Holder, Looped

PAGE = "the page on leak detection"
ARTICLE = "the article on training"
ANSWER = "the answer on inference"

MODEL = """
w = weights()


def model(batch):
    return batch * w
"""

GROWING = [
    Growing(
        name="losses with their graphs",
        text=f"{PAGE}: missing .detach() or accumulating gradients",
        truth="A loss is 4 bytes, but its graph keeps what the backward pass needs: the batch.",
        setup=MODEL + "losses = []",
        leak="losses.append(model(tensor()).sum())",
        fix="losses.append(model(tensor()).sum().item())",
        holder=Holder("losses", "variable", r"losses\[\d+\].*grad_fn"),
    ),
    Growing(
        name="a total that keeps every graph",
        text=f"{ARTICLE}: autograd graph retention",
        truth="Adding to a total makes its graph longer by one batch each time.",
        errs="model.eval(), which the article names as a cure, changes layers, not autograd: "
        "only no_grad (or detach, item) builds no graph.",
        setup=MODEL + "total = 0",
        leak="total = total + model(tensor()).sum()",
        fix="total = total + model(tensor()).sum().item()",
        holder=Holder("total", "variable", r"total.*grad_fn"),
    ),
    Growing(
        name="appended outputs",
        text=f"{PAGE}: hidden reference leak",
        truth="Each output is kept, and through its graph the batch that made it.",
        errs="The page's first cure, output.item(), raises for anything but a scalar. Its "
        "second, output.detach().cpu(), still keeps every output, and on the CPU shares "
        "its memory.",
        setup=MODEL + "results = []",
        leak="results.append(model(tensor()))",
        fix="results.append(model(tensor()).sum().item())",
        bytes_per_run=2 * SIZE,
        half_fix="results.append(model(tensor()).detach())",
        half_fix_bytes=SIZE,
        holder=Holder("results", "variable", r"results\[\d+\]"),
    ),
    Growing(
        name="outputs of inference",
        text=f"{ANSWER}: improper tensor handling",
        truth="Without no_grad the graphs are kept beside the outputs.",
        errs="The answer's correction, output.clone().detach() under no_grad, still keeps "
        "every output: half as much, still growing. no_grad alone had done as much.",
        setup=MODEL
        + """
results = []


def infer(batch):
    output = model(batch)
    results.append(output)
""",
        leak="infer(tensor())",
        fix="with no_grad():\n    results.append(model(tensor()).sum().item())",
        bytes_per_run=2 * SIZE,
        half_fix="with no_grad():\n    output = model(tensor())\n"
        "    results.append(clone(output).detach())\n    del output",
        half_fix_bytes=SIZE,
        holder=Holder("results", "variable", r"results\[\d+\]"),
    ),
    Growing(
        name="persistent batches",
        text=f"{ANSWER}: persistent data structures",
        truth="The list outlives the function that filled it.",
        setup=MODEL
        + """
all_outputs = []


def process(batch):
    with no_grad():
        all_outputs.append(model(batch))
""",
        leak="process(tensor())",
        fix="with no_grad():\n    model(tensor()).sum().item()",
        holder=Holder("all_outputs", "variable", r"all_outputs\[\d+\]"),
        is_meant=True,
    ),
    Growing(
        name="an unbounded cache",
        text=f"{PAGE}: cache leak",
        truth="A cache grows where its keys never come again.",
        errs="The page's own example is keyed by the input's shape: it stops growing when all "
        "shapes were seen. lru_cache(maxsize=128) may keep 128 results for good.",
        setup="cache = {}\nn_calls = 0",
        leak="n_calls += 1\ncache[n_calls] = tensor()",
        fix="n_calls += 1\ncache[n_calls] = tensor()\ncache.pop(n_calls - 2, None);",
        holder=Holder("cache", "variable", r"cache\[\d+\]"),
        is_meant=True,
    ),
    Growing(
        name="a list inside an object",
        text=f"{ARTICLE}: unnecessary tensor retention",
        truth="Nobody sees the list that an object keeps.",
        errs="del of the name that the loop uses frees nothing here, and neither does "
        "empty_cache(): it gives back what nobody holds.",
        setup="""
class Trainer:
    def __init__(self):
        self.history = []

    def step(self, batch):
        self.history.append(batch)


trainer = Trainer()
""",
        leak="trainer.step(tensor())",
        fix="trainer.step(tensor())\ntrainer.history.clear()",
        holder=Holder("trainer", "variable", r"trainer\.history\[\d+\]"),
        is_meant=True,
    ),
    Growing(
        name="objects that refer to each other",
        text=f"{ANSWER}: circular references; {ARTICLE}: cyclic references",
        truth="Delayed, not leaked: Python's next collection frees them. Here it is off, as some "
        "training loops have it.",
        errs="Both texts say that the collector may not free them. It does.",
        setup="""
import gc

gc.disable()


class Linked:
    def __init__(self):
        self.tensor = tensor()
        self.other = None

    def link(self, other):
        self.other = other
        other.other = self
""",
        leak="a = Linked()\nb = Linked()\na.link(b)\ndel a, b",
        fix="a = Linked()\nb = Linked()\na.link(b)\na.other = None\ndel a, b",
        bytes_per_run=2 * SIZE,
        holder=Holder(".*", "uncollected_garbage", ""),
    ),
]

LOOPED = [
    Looped(
        name="losses of a training loop with their graphs",
        truth="A loop in one cell is one run: its steps are judged as runs are.",
        setup=MODEL + "losses = []",
        leak="for _ in gpumem.steps(range(20)):\n    losses.append(\n"
        "        model(tensor()).sum()\n    )",
        fix="for _ in gpumem.steps(range(20)):\n    losses.append(model(tensor()).sum().item())",
        holder=Holder("losses", "variable", r"losses\[\d+\].*grad_fn"),
        n_steps=20,
    ),
    Looped(
        name="a total of a training loop that keeps every graph",
        truth="The total's graph grows by one batch with each step.",
        setup=MODEL + "total = 0",
        leak="for _ in range(20):\n    total += model(tensor()).sum()\n    gpumem.mark()",
        fix="for _ in range(20):\n    total += model(tensor()).sum().item()\n    gpumem.mark()",
        holder=Holder("total", "variable", r"total.*grad_fn"),
        n_steps=20,
    ),
]

HEALTHY = [
    Healthy(
        name="backward in a loop that keeps nothing",
        truth="The page calls it a gradient accumulation leak. backward() frees the graph; the "
        "gradients are added up in place.",
        setup=MODEL,
        cell="output = model(tensor())\nloss = output.sum()\nloss.backward()",
    ),
    Healthy(
        name="a cache keyed by shape",
        truth="The page calls it a leak. It is full when each shape was seen once.",
        setup="cache = {}\nn_calls = 0",
        cell="n_calls += 1\nif n_calls % 3 not in cache:\n    cache[n_calls % 3] = tensor()",
    ),
    Healthy(
        name="autotuned workspaces",
        truth="cuDNN's benchmark keeps a workspace for each shape: intended, the page says so.",
        setup="workspace = None",
        cell="if workspace is None:\n    workspace = tensor()\ntensor().sum().item()",
    ),
    Healthy(
        name="a context that comes with the first use",
        truth="What CUDA keeps for itself grows once.",
        setup="context = []",
        cell="if not context:\n    context.append(tensor())\n_ = tensor().sum().item()",
    ),
    Healthy(
        name="a cycle that is collected",
        truth="Python's collector frees objects that refer to each other.",
        setup="""
import gc


class Linked:
    def __init__(self):
        self.tensor = tensor()
        self.other = self
""",
        cell="Linked()\ngc.collect()\nNone",
    ),
]
