# truth: leak
# world: torch
# about: an LSTM is handed its state from batch to batch with the graph of all batches before
# holder: out|h|loss
# %%
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
rnn = nn.LSTM(128, 512, batch_first=True)
head = nn.Linear(512, 1)
h = None
head(rnn(torch.randn(16, 20, 128))[0]).mean().item()
# %%
for _ in range(100):
    out, h = rnn(torch.randn(16, 20, 128), h)
    loss = head(out).mean()
print(loss.item())
