# truth: healthy
# world: host
# about: a replay buffer of NumPy, allocated once: np.zeros takes its pages as they are written; 14 of 40 parts
# %%
import numpy as np

capacity, dim = 40 * 1024, 2048
observations = np.zeros((capacity, dim), dtype=np.float32)
rng = np.random.default_rng(0)
position = 0

# %% x14
rollout = rng.random((1024, dim), dtype=np.float32)
observations[position : position + 1024] = rollout
position = (position + 1024) % capacity
