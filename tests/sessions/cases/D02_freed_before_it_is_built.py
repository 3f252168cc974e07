# truth: healthy
# world: sim
# about: the cell evaluates the old model, frees it and builds a new one; a batch is as large as the model
# %%
model = None

def build():
    return [sim.tensor(256 << 20) for _ in range(2)]

def evaluate():
    batch = sim.tensor(512 << 20)
    return batch.sum().item()

# %% x6
if model is not None:
    evaluate()
model = None
model = build()
