"""Workflows that leak nothing: no finding may accuse them."""

from __future__ import annotations

from .cases import Healthy

TORCH = ("torch",)
MODEL = """
w = weights()


def model(batch):
    return batch * w
"""
NETWORK = """
net = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 8))
batch = torch.ones(64, 1024)
"""

HEALTHY = [
    Healthy("a training step", "model(tensor()).sum().backward()\nw.grad = None", MODEL),
    Healthy("gradients that are added up", "model(tensor()).sum().backward()", MODEL),
    Healthy(
        "numbers that are kept",
        "losses.append(model(tensor()).sum().item())",
        MODEL + "losses = []",
    ),
    Healthy("inference under no_grad", "with no_grad():\n    output = model(tensor())", MODEL),
    Healthy("the last output under one name", "output = model(tensor())", MODEL),
    Healthy(
        "a moving average",
        "average = (average * 0.9 + tensor() * 0.1).detach()",
        "average = tensor()",
    ),
    Healthy("a copy of the weights that is replaced", "best = clone(w).detach()", MODEL),
    Healthy(
        "a window of the last three",
        "window.append(tensor())",
        "import collections\n\nwindow = collections.deque(maxlen=3)",
    ),
    Healthy(
        "a bounded cache",
        "n += 1\nlookup(n);",
        "import functools\n\nn = 0\n\n\n@functools.lru_cache(maxsize=2)\n"
        "def lookup(n):\n    return tensor()",
    ),
    Healthy(
        "a cache of plain values",
        "n += 1\nlookup(n);",
        "import functools\n\nn = 0\n\n\n@functools.lru_cache(maxsize=None)\n"
        "def lookup(n):\n    return tensor().sum().item()",
    ),
    Healthy(
        "a weak cache",
        "n += 1\nt = cache[n] = tensor()\ndel t",
        "import weakref\n\nn = 0\ncache = weakref.WeakValueDictionary()",
    ),
    Healthy(
        "batches of a generator",
        "for batch in batches():\n    model(batch).sum().item()",
        MODEL + "\n\ndef batches():\n    for _ in range(3):\n        yield tensor()",
    ),
    Healthy(
        "an exception that is handled",
        "try:\n    fails()\nexcept ValueError:\n    pass",
        "def fails():\n    batch = tensor()\n    raise ValueError",
    ),
    Healthy(
        "threads",
        "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n"
        "    sums = list(pool.map(lambda _: tensor().sum().item(), range(4)))",
        "import concurrent.futures",
    ),
    Healthy("a displayed value that is silenced", "tensor();"),
    Healthy("a buffer that is filled again", "pinned[0] = tensor()", "pinned = [None]"),
    Healthy("a ring of buffers", "n += 1\nring[n % 4] = tensor()", "n = 0\nring = [None] * 4"),
    Healthy(
        "objects with a parent",
        "child = Child(parent)\ndel child",
        "import weakref\n\n\nclass Parent:\n    pass\n\n\nparent = Parent()\n\n\nclass Child:\n"
        "    def __init__(self, parent):\n        self.parent = weakref.ref(parent)\n"
        "        self.tensor = tensor()",
    ),
    Healthy(
        "a training loop with optimizer state",
        "optimizer.zero_grad()\nnet(batch).sum().backward()\noptimizer.step()",
        NETWORK + "optimizer = torch.optim.AdamW(net.parameters())",
        worlds=TORCH,
    ),
    Healthy(
        "gradient accumulation over four batches",
        "for _ in range(4):\n    (net(batch).sum() / 4).backward()\n"
        "optimizer.step()\noptimizer.zero_grad()",
        NETWORK + "optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)",
        worlds=TORCH,
    ),
    Healthy(
        "exponential moving average of a network",
        "net(batch).sum().backward()\naverage.update_parameters(net)",
        NETWORK + "average = torch.optim.swa_utils.AveragedModel(net)",
        worlds=TORCH,
    ),
    Healthy(
        "mixed precision",
        "with torch.autocast('cpu', torch.bfloat16):\n    loss = net(batch).sum()\n"
        "loss.backward()\noptimizer.step()",
        NETWORK + "optimizer = torch.optim.SGD(net.parameters(), 0.1)",
        worlds=TORCH,
    ),
    Healthy(
        "a checkpointed network",
        "torch.utils.checkpoint.checkpoint(net, batch, use_reentrant=False).sum().backward()",
        "import torch.utils.checkpoint\n" + NETWORK,
        worlds=TORCH,
    ),
    Healthy(
        "inference mode",
        "with torch.inference_mode():\n    output = net(batch)",
        NETWORK,
        worlds=TORCH,
    ),
    Healthy(
        "a hook that keeps the last activation",
        "net(batch).sum().backward()",
        NETWORK + "seen = {}\nnet[0].register_forward_hook("
        "lambda module, args, output: seen.update(last=output.detach()))",
        worlds=TORCH,
    ),
    Healthy(
        "a data loader",
        "for (part,) in loader:\n    net(part).sum().item()",
        NETWORK + "data = torch.utils.data.TensorDataset(torch.ones(256, 1024))\n"
        "loader = torch.utils.data.DataLoader(data, batch_size=64)",
        worlds=TORCH,
    ),
    Healthy(
        "a key-value cache of fixed size",
        "position = (position + 1) % 64\nkeys[:, position] = torch.ones(8, 128)",
        "keys = torch.zeros(8, 64, 128)\nposition = 0",
        worlds=TORCH,
    ),
]
