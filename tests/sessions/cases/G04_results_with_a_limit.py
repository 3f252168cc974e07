# truth: healthy
# world: sim
# about: an LRU of 30 results by OrderedDict
# %%
from collections import OrderedDict
cache = OrderedDict()
MAX = 30
n = 0
def encode(key):
    if key in cache:
        cache.move_to_end(key)
        return cache[key]
    cache[key] = sim.tensor(24 * MB)
    if len(cache) > MAX:
        cache.popitem(last=False)
    return cache[key]
# %% x14
out = encode(f"doc{n}").sum().item()
n += 1
