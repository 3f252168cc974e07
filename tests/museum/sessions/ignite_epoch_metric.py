# truth: leak
# world: torch
# entry: ignite-epoch-metric
# about: a metric over whole epochs is updated by hand and never reset
# %%
import torch
from ignite.metrics import EpochMetric

torch.set_num_threads(1)
metric = EpochMetric(lambda y_pred, y: (y_pred - y).abs().mean().item(), check_compute_fn=False)

# %% x12
# cure
for _ in range(4):
    metric.update((torch.rand(1 << 18, 1), torch.rand(1 << 18, 1)))
