# truth: healthy
# world: sim
# about: Run All twice: one cell fills the data set in a loop and prints its length, the next trains; the first cell empties the names
# %%
import time
# %% loop x3
# %%
train_set = []
w = sim.tensor(8 * MB, requires_grad=True)
# %%
for i in range(30):
    time.sleep(0.01)
    train_set.append(sim.tensor(12 * MB))
print("n =", len(train_set))
# %%
for x in train_set:
    (x * w).sum().backward()
    w.grad = None
# %% end
