# truth: healthy
# world: sim
# about: _ = model(batch): the user's own underscore is bound anew in each run; 12 runs
# %%
def model(batch):
    return (batch * 0.5).detach(), batch.sum().item()

# %% x12
_, score = model(sim.tensor(48 << 20))
