# truth: healthy
# world: sim
# about: a WeakValueDictionary of models by name: an entry goes with its last user
# %%
import weakref

loaded = weakref.WeakValueDictionary()

class Model:
    def __init__(self):
        self.weight = sim.tensor(96 << 20)

def load(name):
    model = loaded.get(name)
    if model is None:
        model = loaded[name] = Model()
    return model

n = 0

# %% x14
n += 1
model = None
model = load(f"checkpoint-{n}")
score = model.weight.sum().item()
