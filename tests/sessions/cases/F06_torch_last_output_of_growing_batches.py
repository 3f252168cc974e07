# truth: healthy
# world: torch
# about: an evaluation without no_grad, sorted by length: the output of the last and largest batch stays, with its graph
# %%
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(12)])
# %%
for step in range(60):
    batch = torch.randn(512 + 16 * step, 1024)
    out = net(batch)
    score = out.mean().item()
print(f"{score:.4f}")
