# truth: leak
# world: sim
# about: trainer.history collects 24 MiB a run; beside it trainer.cache is replaced by one of another size
# holder: trainer(\.history)?
# bytes: 25165824
# %%
import random

from gpumem import sim

sim.use(16 << 30)
random.seed(3)


class Trainer:
    def __init__(self):
        self.history = []
        self.cache = None

    def fit(self, batch):
        self.cache = sim.tensor(batch)
        self.history.append(sim.tensor(24 << 20))


trainer = Trainer()

# %% x14
trainer.cache = None
trainer.fit(random.randrange(20, 400) << 20)
