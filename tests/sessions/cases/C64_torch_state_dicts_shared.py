# truth: healthy
# world: torch
# about: checkpoints.append(model.state_dict()): the entries are the parameters themselves, nothing is copied
# %%
model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
checkpoints = []

# %% x12
x = torch.randn(64, 1024)
loss = model(x).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
checkpoints.append(model.state_dict())
