# truth: leak
# world: torch
# entry: torch-lbfgs-history
# about: a large model is fitted with L-BFGS, which remembers its last steps
# twin: {"before": "LBFGS(model.parameters()", "after": "LBFGS(model.parameters(), history_size=2"}
# %%
import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(1024, 1024)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=1)
x, y = torch.randn(64, 1024), torch.randn(64, 1024)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).abs().pow(1.5).mean()
    loss.backward()
    return loss


# %% x16
loss = optimizer.step(closure).item()
