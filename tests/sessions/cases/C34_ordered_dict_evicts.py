# truth: healthy
# world: sim
# about: an LRU cache made of an OrderedDict with six places; each run has a new key; 18 runs
# %%
from collections import OrderedDict

class LRU:
    def __init__(self, size):
        self.size, self.items = size, OrderedDict()

    def get(self, key):
        if key in self.items:
            self.items.move_to_end(key)
            return self.items[key]
        value = self.items[key] = sim.tensor(32 << 20)
        if len(self.items) > self.size:
            self.items.popitem(last=False)
        return value

tiles = LRU(6)
x = 0

# %% x18
x += 1
tile = tiles.get(("z12", x))
level = tile.sum().item()
