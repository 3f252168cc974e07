# truth: healthy
# world: sim
# about: activations pile up until memory is out; the list is emptied, the cell edited, and all is well
# alarms: allowed
# %%
w = sim.tensor(64 << 20, requires_grad=True)
activations = []

# %% x8 id=train
hidden = sim.tensor(1200 << 20)
activations.append(hidden)
loss = (hidden * w).sum()
# %%
activations.clear()
hidden = loss = None
# %% x8 id=train
hidden = sim.tensor(1200 << 20)
activations.append(hidden.sum().item())
loss = (hidden * w).sum().item()
