# truth: leak
# world: sim
# about: one cell makes a large model and marks the steps of its loop, in which a small list collects
# holder: losses
# bytes: 20971520
# meant: 2214592512
# %%
import gpumem
from gpumem import sim

sim.use(8 << 30)
# %%
model = sim.tensor(2 << 30, requires_grad=True)
losses = []
for step in gpumem.steps(range(40)):
    batch = sim.tensor(64 << 20)
    losses.append(sim.tensor(20 << 20))
