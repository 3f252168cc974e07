# truth: leak
# world: torch
# entry: pyro-param-store
# about: each trial has parameters of its own names; Pyro keeps them all
# %%
import pyro
import torch

torch.set_num_threads(1)
trials = iter(range(100))

# %% x12
# cure
trial = next(trials)
weight = pyro.param(f"weight_{trial}", torch.randn(1024, 2048))
score = weight.mean().item()
