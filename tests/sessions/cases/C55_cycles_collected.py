# truth: healthy
# world: sim
# about: trainer and callback refer to each other; gc.collect() in every fourth run frees them; 16 runs
# %%
import gc

class Callback:
    def __init__(self, trainer):
        self.trainer = trainer

class Trainer:
    def __init__(self):
        self.model = sim.tensor(40 << 20)
        self.callback = Callback(self)

n = 0

# %% x16
n += 1
trainer = Trainer()
loss = trainer.model.sum().item()
if n % 4 == 0:
    gc.collect()
