# truth: healthy
# world: torch
# about: running_loss += loss without .item(): backward() has freed what the graphs kept, so only their nodes stay
# %%
net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
running_loss = 0.0

# %% x14
for _ in range(4):
    loss = net(torch.randn(512, 1024)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running_loss += loss
