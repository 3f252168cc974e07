# truth: leak
# world: torch
# about: a monitor keeps a small output per step while attention over sequences of varying length allocates tens of MiB
# holder: monitor(\..*)?
# bytes: 0

# %%
import random
import time

import torch
import torch.nn as nn

torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)


class StepMonitor:
    def __init__(self):
        self.events = []
        self.t0 = time.time()

    def log(self, step, **values):
        self.events.append({"step": step, "t": time.time() - self.t0, **values})

    def throughput(self):
        return len(self.events) / (time.time() - self.t0)


# %%
d_model, heads = 512, 8
wqkv = nn.Linear(d_model, 3 * d_model)
wo = nn.Linear(d_model, d_model)
monitor = StepMonitor()

with torch.no_grad():
    for step in range(110):
        L = random.randint(200, 1000)
        x = torch.randn(L, d_model)
        q, k, v = wqkv(x).view(L, 3, heads, d_model // heads).permute(1, 2, 0, 3)
        scores = q @ k.transpose(-1, -2) / 8.0
        attn = scores.softmax(-1)
        out = wo((attn @ v).transpose(0, 1).reshape(L, d_model))
        monitor.log(step, length=L, out=out, attn_max=attn.max().item())
        if step % 30 == 0:
            print(step, L, f"{monitor.throughput():.1f} it/s")
