# truth: leak
# world: torch
# about: one cell, one loop: each epoch registers a forward hook whose closure holds that epoch's batch; none is removed
# holder: net
# bytes: 4194304
# %%
import time
net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
opt = torch.optim.SGD(net.parameters(), 0.01)
# %%
stats = []
for epoch in range(30):
    x, y = torch.randn(2048, 512), torch.randint(0, 10, (2048,))
    time.sleep(0.02)  # they come from the disk
    def hook(mod, inp, out, ref=x):
        stats.append((out - ref).abs().mean().item())
    net[1].register_forward_hook(hook)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
print(loss.item(), len(stats))
