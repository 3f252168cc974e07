# truth: leak
# world: sim
# about: one cell makes a large model and trains in a loop, in which a small list collects
# holder: losses
# bytes: 20971520
# meant: 2147483648
# %%
import time

from gpumem import sim

sim.use(8 << 30)
# %%
model = sim.tensor(2 << 30, requires_grad=True)
losses = []
for step in range(40):
    time.sleep(0.03)
    losses.append(sim.tensor(20 << 20))
