# truth: leak
# world: torch
# entry: accelerate-prepared-models
# about: a search prepares a new model in each trial and deletes it; the accelerator keeps them all
# %%
import gc

import torch
from accelerate import Accelerator
from torch import nn

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)

# %% x6
# cure
model = nn.Linear(2048, 2048)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
loss = model(torch.randn(4, 2048)).pow(2).mean().item()
del model, optimizer
gc.collect();
