# truth: leak
# world: torch
# about: a deep copy of the state dict is kept after every epoch
# holder: checkpoints
# bytes: 16789504
# %%
import copy

model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
checkpoints = []

# %% x12
x = torch.randn(64, 1024)
loss = model(x).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
checkpoints.append(copy.deepcopy(model.state_dict()))
