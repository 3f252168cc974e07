# truth: leak
# world: torch
# about: a forward hook that was for one look at the features keeps them of every call, in a loop that is over at once
# holder: features
# bytes: 1048576
# %%
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 16))
features = []


def keep(module, args, output):
    features.append(output.detach())


net[1].register_forward_hook(keep)
xs = [torch.randn(256, 64) for _ in range(80)]
# %%
with torch.no_grad():
    for x in xs:
        net(x)
