# truth: healthy
# world: sim
# about: a heap keeps the five hardest batches; after five runs an easier one leaves for each that comes; 20 runs
# %%
import heapq
import random

random.seed(1)
hardest, n = [], 0

# %% x20
n += 1
entry = (random.random(), n, sim.tensor(24 << 20))
if len(hardest) < 5:
    heapq.heappush(hardest, entry)
else:
    heapq.heappushpop(hardest, entry)
entry = None
