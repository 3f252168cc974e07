# truth: healthy
# world: sim
# about: functools.cache of grids for five resolutions that come in turn; 20 runs
# %%
from functools import cache
from itertools import cycle

resolutions = cycle([224, 256, 288, 320, 384])

@cache
def grid(size):
    return sim.tensor(size * size * 8 * 16)

# %% x20
size = next(resolutions)
value = (grid(size) * 2).sum().item()
