# truth: leak
# world: sim
# about: one loop keeps predictions and losses, each with its graph; only the predictions are deleted
# holder: losses
# bytes: 0
# %%
from time import sleep

from gpumem import sim

sim.use(8 << 30)
MIB = 1 << 20
weights = sim.tensor(16 * MIB, requires_grad=True)
predictions, losses = [], []
# %%
for step in range(30):
    predicted = sim.tensor(64 * MIB) * weights
    predictions.append(predicted)
    losses.append((sim.tensor(24 * MIB) * weights).sum())
    sleep(0.02)
# %%
del predictions
