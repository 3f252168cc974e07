# truth: leak
# world: sim
# about: lru_cache(maxsize=None) of masks by sequence length, and every text has another length
# holder: causal_mask
# bytes: 16777216
# %%
from functools import lru_cache

w = sim.tensor(4 << 20, requires_grad=True)

@lru_cache(maxsize=None)
def causal_mask(length):
    return sim.tensor(16 << 20)

length = 100

# %% x12
length += 3
scores = causal_mask(length) * w
loss = scores.sum()
loss.backward()
w.grad = None
del scores, loss
