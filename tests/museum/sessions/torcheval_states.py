# truth: leak
# world: torch
# entry: torcheval-list-states
# about: a metric that collects its inputs is updated in each epoch and never reset
# %%
import torch
from torcheval.metrics import BinaryAUROC

torch.set_num_threads(1)
auroc = BinaryAUROC()

# %% x12
# cure
for _ in range(4):
    auroc.update(torch.rand(1 << 18), torch.randint(0, 2, (1 << 18,)))
