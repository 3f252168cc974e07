# truth: leak
# world: torch
# entry: snntorch-instances
# about: each trial makes a new network of neurons and drops it
# %%
import gc

import snntorch as snn
import torch
from torch import nn

torch.set_num_threads(1)

# %% x12
# cure
net = nn.Sequential(nn.Linear(64, 64), snn.Leaky(beta=0.9 * torch.ones(2 << 20), init_hidden=True))
del net
gc.collect();
