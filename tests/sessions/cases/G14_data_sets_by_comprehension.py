# truth: healthy
# world: sim
# about: comprehensions load the training and validation data once
# %%
import time
def load(i):
    time.sleep(0.02)
    return sim.tensor(20 * MB)
# %%
train = [load(i) for i in range(40)]
# %%
val = {i: load(i) for i in range(20)}
# %% x4
score = sum(x.sum().item() for x in val.values())
