# truth: healthy
# world: sim
# about: class-level zoo by dataset name: six names in six runs, then the names again; the cell evaluates the newest
# %%
class Model:
    zoo = {}
    def __init__(self, name):
        self.w = [sim.tensor(20 * MB) for _ in range(2)]
        Model.zoo[name] = self
    def evaluate(self):
        return sum((w * 2).sum().item() for w in self.w)
names, k = ["mnist", "cifar", "svhn", "stl", "food", "cars"], 0
# %% x13
m = Model(names[k % 6])
k += 1
print(names[(k - 1) % 6], m.evaluate(), len(Model.zoo))
