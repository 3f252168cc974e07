# truth: leak
# world: torch
# about: a running mean as a function with a nonlocal sum, which adds up losses with their graphs in a loop
# holder: mean_loss
# bytes: 0
# %%
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 8))


def running_mean():
    total, n = 0.0, 0

    def add(value):
        nonlocal total, n
        total = total + value
        n += 1
        return total / n

    return add


mean_loss = running_mean()
# %%
for step in range(60):
    batch = torch.randn(512, 512)
    time.sleep(0.01)  # it comes from the disk
    mean = mean_loss(net(batch).pow(2).mean())
