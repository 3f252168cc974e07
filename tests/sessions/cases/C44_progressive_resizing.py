# truth: healthy
# world: sim
# about: progressive resizing: the images get larger every second run, the last batch and output keep their names
# %%
w = sim.tensor(4 << 20, requires_grad=True)
size, runs = 64, 0

# %% x16
runs += 1
if runs % 2 == 0:
    size += 32
images = sim.tensor(64 * 3 * 4 * size * size)
output = (images * w).sum()
output.backward()
w.grad = None
