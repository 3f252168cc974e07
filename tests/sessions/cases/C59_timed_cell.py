# truth: leak
# world: sim
# about: %%time above a cell that appends losses with their graphs
# holder: losses
# bytes: 12582912
# %%
w = sim.tensor(4 << 20, requires_grad=True)
losses = []

# %% x12
%%time
loss = (sim.tensor(12 << 20) * w).sum()
losses.append(loss)
