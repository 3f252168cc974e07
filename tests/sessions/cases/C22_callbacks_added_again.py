# truth: leak
# world: sim
# about: the cell that trains also adds its callback: each run adds one more, and each has a workspace
# holder: trainer
# bytes: 25165824
# %%
w = sim.tensor(4 << 20, requires_grad=True)

class GradientNoise:
    def __init__(self):
        self.noise = sim.tensor(24 << 20)

    def __call__(self, trainer):
        (self.noise * 0.1).sum().item()

class Trainer:
    def __init__(self):
        self.callbacks = []

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def fit(self):
        (sim.tensor(8 << 20) * w).sum().backward()
        w.grad = None
        for callback in self.callbacks:
            callback(self)

trainer = Trainer()

# %% x12
trainer.add_callback(GradientNoise())
trainer.fit()
