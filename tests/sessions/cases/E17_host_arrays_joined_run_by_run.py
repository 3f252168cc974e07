# truth: leak
# world: host
# about: each run joins what it reads to the array of all runs before
# holder: seen
# bytes: 16000000
# %%
import numpy as np

seen = np.zeros((0, 1000))
# %% x12
seen = np.concatenate([seen, np.random.rand(2000, 1000)])
