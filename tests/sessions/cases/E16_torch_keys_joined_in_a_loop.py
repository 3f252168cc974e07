# truth: leak
# world: torch
# about: a layer joins the keys of each token to those before, and nobody starts anew
# holder: layer(\.keys)?
# bytes: 2097152
# %%
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
class Layer:
    def __init__(self):
        self.keys = None

    def step(self, keys):
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys])
        time.sleep(0.01)
        return self.keys.sum()


layer = Layer()
# %%
for token in range(60):
    layer.step(torch.randn(512, 1024))
