# truth: leak
# world: sim
# about: the cell ends with the model's output, so Out keeps every one of them
# holder: Out.*|_.*
# bytes: 16777216
# %%
def model(batch):
    return (batch * 0.5).detach()

# %% x12
model(sim.tensor(16 << 20))
