# truth: leak
# world: sim
# about: a hyperparameter sweep, a run for each learning rate: the list of results holds the models
# holder: results
# bytes: 268435456
# %%
class MLP:
    def __init__(self):
        self.layers = [sim.tensor(64 << 20, requires_grad=True) for _ in range(4)]

    def fit(self, lr):
        loss = sum(((sim.tensor(8 << 20) * w).sum() for w in self.layers), start=0.0)
        loss.backward()
        for w in self.layers:
            w.grad = None
        return lr

results = []
lr = 1.0

# %% x10
lr = lr / 2
model = MLP()
val = model.fit(lr)
results.append({"lr": lr, "val": val, "model": model})
