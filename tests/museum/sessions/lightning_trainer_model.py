# truth: leak
# world: torch
# entry: lightning-trainer-keeps-model
# about: the model is deleted after fit(), the Trainer keeps it
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
        self.layer = nn.Linear(5000, 5000)

    def training_step(self, batch, idx):
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


model = Net()
loader = DataLoader(TensorDataset(torch.randn(4, 5000)), batch_size=2)

# %%
trainer = L.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(model, loader)

# %%
del model
# cure
gc.collect();
