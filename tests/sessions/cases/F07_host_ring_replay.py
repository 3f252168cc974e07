# truth: healthy
# world: host
# about: a list based ring buffer grows to its capacity during random warm-up, afterwards old slots are overwritten and sampled.
# %%
import time
import numpy as np
rng = np.random.default_rng(1)
# %%
class ReplayBuffer:
    """Ring of rollouts; `storage` grows up to `capacity`, then `pos` wraps."""
    def __init__(self, capacity):
        self.capacity = capacity
        self.storage = []
        self.pos = 0
    def push(self, item):
        if len(self.storage) < self.capacity:
            self.storage.append(item)
        else:
            self.storage[self.pos] = item
        self.pos = (self.pos + 1) % self.capacity
    def sample(self, k):
        idx = rng.integers(0, len(self.storage), size=k)
        return np.stack([self.storage[i][:256] for i in idx])
    def __len__(self):
        return len(self.storage)
buf = ReplayBuffer(capacity=60)
# %%
# warm-up with a random policy, nothing is learnt yet
for _ in range(60):
    buf.push(rng.standard_normal((4096, 96), dtype=np.float32))
    time.sleep(0.025)
print("warm-up done,", len(buf), "rollouts")
# %%
w = np.zeros(96, dtype=np.float32)
for it in range(50):
    buf.push(rng.standard_normal((4096, 96), dtype=np.float32))
    batch = buf.sample(8).reshape(-1, 96)
    err = batch @ w - batch[:, 0]
    w -= 0.05 * (batch.T @ err) / len(batch)
    time.sleep(0.01)
print("w[0]", w[0], "buffer", len(buf))
