# truth: leak
# world: sim
# about: losses fill the device; the cell is run twelve more times and fails each time; nothing is freed
# holder: losses
# bytes: 629145600
# %%
w = sim.tensor(64 << 20, requires_grad=True)
losses = []

def train():
    batch = sim.tensor(600 << 20)
    return (batch * w).sum()

# %% x26
loss = train()
losses.append(loss)
