# truth: leak
# world: torch
# entry: lightning-trainer-keeps-data
# about: the data are deleted after fit(), the Trainer keeps its data loader
# %%
import gc
import logging

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1000, 1)

    def training_step(self, batch, idx):
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


features = torch.randn(30_000, 1000)

# %%
trainer = L.Trainer(
    max_steps=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(Net(), DataLoader(TensorDataset(features), batch_size=8))

# %%
del features
# cure
gc.collect();
