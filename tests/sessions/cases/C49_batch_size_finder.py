# truth: healthy
# world: sim
# about: the batch size is doubled until memory is out, then the last one that fits is used; five runs
# %%
w = sim.tensor(256 << 20, requires_grad=True)

def attempt(batch_size):
    loss = (sim.tensor(batch_size * (16 << 20)) * w).sum()
    loss.backward()
    w.grad = None

# %% x5
batch_size = 16
while True:
    try:
        attempt(batch_size)
        batch_size *= 2
    except sim.OutOfMemoryError:
        batch_size //= 2
        break
attempt(batch_size)
