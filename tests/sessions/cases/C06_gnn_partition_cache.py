# truth: healthy
# world: sim
# about: GNN: the features of a graph's eight partitions are cached when they are first needed; 24 runs
# %%
N_PARTS = 8
w = sim.tensor(4 << 20, requires_grad=True)
features = {}

def neighbours(part):
    if part not in features:
        features[part] = sim.tensor(24 << 20)
    return features[part]

step = 0

# %% x24
x = neighbours(step % N_PARTS)
(x * w).sum().backward()
w.grad = None
step += 1
