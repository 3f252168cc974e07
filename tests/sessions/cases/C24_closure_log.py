# truth: leak
# world: sim
# about: a closure collects losses with their graphs
# holder: log_loss
# bytes: 12582912
# %%
w = sim.tensor(4 << 20, requires_grad=True)

def make_logger():
    values = []

    def log(value):
        values.append(value)
        return len(values)

    return log

log_loss = make_logger()

# %% x12
loss = (sim.tensor(12 << 20) * w).sum()
step = log_loss(loss)
