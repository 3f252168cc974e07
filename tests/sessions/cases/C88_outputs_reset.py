# truth: healthy
# world: sim
# alarms: allowed
# about: tensors are displayed ten times, then the user forgets them with %reset out, and goes on without
# %%
def model(batch):
    return (batch * 0.5).detach()

# %% x10
model(sim.tensor(16 << 20))
# %%
%reset -f out
# %% x6
result = model(sim.tensor(16 << 20)).sum().item()
