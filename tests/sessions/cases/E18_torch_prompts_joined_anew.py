# truth: healthy
# world: torch
# about: each prompt joins its tokens to what is past, and starts anew
# %%
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
past = None
# %% x3
for prompt in range(5):
    past = None
    for token in range(20):
        new = torch.randn(128, 2048)
        past = new if past is None else torch.cat([past, new])
        time.sleep(0.004)
