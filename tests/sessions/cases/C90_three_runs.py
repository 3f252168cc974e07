# truth: undecided
# world: sim
# about: a cell that appends is run three times: nobody can know yet
# %%
w = sim.tensor(4 << 20, requires_grad=True)
losses = []

# %% x3
loss = (sim.tensor(12 << 20) * w).sum()
losses.append(loss)
