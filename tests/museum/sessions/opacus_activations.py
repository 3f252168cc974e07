# truth: leak
# world: torch
# entry: opacus-activations
# about: a model with per-sample gradients is validated in training mode, without a backward pass
# twin: {"before": "# cure", "after": "model.eval()"}
# %%
import torch
from opacus import GradSampleModule
from torch import nn

torch.set_num_threads(1)
model = GradSampleModule(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 8)))

# %% x12
# cure
score = model(torch.randn(2048, 1024)).mean().item()
