# truth: undecided
# world: sim
# about: a cell fails six times: each traceback is a reference cycle and keeps its batch until Python's next collection
# %%
w = sim.tensor(4 << 20, requires_grad=True)

def train_step(batch):
    loss = (batch * w).sum()
    raise RuntimeError("expected scalar type Float but found Half")

# %% x6
train_step(sim.tensor(120 << 20))
