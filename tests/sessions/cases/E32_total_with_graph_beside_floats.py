# truth: leak
# world: sim
# about: in one loop a tracker lists its losses as floats, as it should, and adds them up with their graphs
# holder: tracker
# bytes: 16777216
# %%
from time import sleep

from gpumem import sim

sim.use(8 << 30)


class Tracker:
    def __init__(self):
        self.total = 0
        self.seen = []

    def note(self, value):
        self.total = self.total + value
        self.seen.append(value.item())


kernel = sim.tensor(16 << 20, requires_grad=True)
tracker = Tracker()
# %%
for batch in range(30):
    tracker.note((sim.tensor(16 << 20) * kernel).sum())
    sleep(0.02)
