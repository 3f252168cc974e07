# truth: healthy
# world: torch
# about: gradient hooks are registered, used and removed in each run; the norms are kept as floats
# %%
net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 8))
norms = []

# %% x12
handles = [
    p.register_hook(lambda grad: norms.append(grad.norm().item())) for p in net.parameters()
]
net(torch.randn(1024, 1024)).sum().backward()
net.zero_grad()
for handle in handles:
    handle.remove()
