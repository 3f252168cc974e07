# truth: leak
# world: torch
# entry: opacus-grad-samples
# about: gradients are collected over many batches without a step
# %%
import torch
from opacus import GradSampleModule
from torch import nn

torch.set_num_threads(1)
model = GradSampleModule(nn.Linear(256, 256))

# %% x12
# cure
loss = model(torch.randn(32, 256)).pow(2).mean()
loss.backward()
loss = loss.item()
