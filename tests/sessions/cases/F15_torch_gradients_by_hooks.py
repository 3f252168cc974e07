# truth: leak
# world: torch
# about: tensor hooks append every weight gradient to a dict of lists although only the last norm is ever printed
# holder: grad_log
# %%
import torch
from torch import nn
from collections import defaultdict

torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(768, 896), nn.ReLU(), nn.Linear(896, 128))
grad_log = defaultdict(list)

def watch(name, p):
    p.register_hook(lambda g: grad_log[name].append(g))

for name, p in net.named_parameters():
    if p.ndim > 1:          # biases are boring
        watch(name, p)

opt = torch.optim.SGD(net.parameters(), lr=1e-2)
lossf = nn.CrossEntropyLoss()
# %%
it = 0
while it < 90:
    x = torch.randn(64, 768)
    y = torch.randint(0, 128, (64,))
    opt.zero_grad()
    loss = lossf(net(x), y)
    loss.backward()
    opt.step()
    if it % 15 == 0:
        norms = {k: round(v[-1].norm().item(), 3) for k, v in grad_log.items()}
        print(it, round(loss.item(), 3), norms)
    it += 1
