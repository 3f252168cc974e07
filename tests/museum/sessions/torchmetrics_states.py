# truth: leak
# world: torch
# entry: torchmetrics-list-states
# about: a metric with list states is updated in each epoch and never reset
# %%
import torch
from torchmetrics.classification import MultilabelAveragePrecision

torch.set_num_threads(1)
avg_p = MultilabelAveragePrecision(num_labels=64)

# %% x8
# cure
for _ in range(8):
    pred, target = torch.rand(4096, 64), torch.randint(0, 2, (4096, 64))
    avg_p.update(pred, target)
