# truth: leak
# world: sim
# about: lru_cache on a method: the cache keeps self, and so every encoder that was ever made
# holder: Encoder.*
# bytes: 88080384
# %%
from functools import lru_cache

class Encoder:
    def __init__(self):
        self.weight = sim.tensor(80 << 20)

    @lru_cache(maxsize=128)
    def encode(self, text):
        return sim.tensor(4 << 20)

# %% x12
encoder = Encoder()
vector = encoder.encode("the quick brown fox")
