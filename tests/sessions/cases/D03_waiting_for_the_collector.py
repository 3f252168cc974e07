# truth: undecided
# world: sim
# about: each run leaves a trainer and a callback that refer to each other; nothing collects them yet
# %%
import gc

gc.disable()

class Callback:
    def __init__(self, trainer):
        self.trainer = trainer

class Trainer:
    def __init__(self):
        self.model = sim.tensor(40 << 20)
        self.callback = Callback(self)

# %% x16
trainer = Trainer()
loss = trainer.model.sum().item()
