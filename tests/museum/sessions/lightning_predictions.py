# truth: leak
# world: torch
# entry: lightning-trainer-keeps-predictions
# about: the predictions are deleted, the Trainer keeps them
# twin: {"before": "trainer.predict(model, loader)", "after": "trainer.predict(model, loader, return_predictions=False)"}
# %%
import gc
import logging

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(L.LightningModule):
    def predict_step(self, batch, idx):
        return batch[0].repeat(1, 1 << 18)


model = Net()
loader = DataLoader(TensorDataset(torch.randn(100, 1)), batch_size=1)
trainer = L.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)

# %%
predictions = trainer.predict(model, loader)

# %%
del predictions
gc.collect();
