# truth: leak
# world: torch
# about: a function that remembers losses for a chart, made by another function; it is called once a run
# holder: remember
# bytes: 5261312
# %%
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 8))


def memory():
    seen = []

    def remember(loss):
        seen.append(loss)
        return len(seen)

    return remember


remember = memory()
# %% x10
batch = torch.randn(512, 512)
loss = net(batch).pow(2).mean()
n_seen = remember(loss)
