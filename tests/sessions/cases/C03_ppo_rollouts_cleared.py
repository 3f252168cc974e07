# truth: healthy
# world: sim
# about: PPO: a rollout of 16 steps fills a buffer, four updates use it, then it is cleared; a run is an iteration
# %%
policy = sim.tensor(16 << 20, requires_grad=True)

class RolloutBuffer:
    def __init__(self):
        self.obs, self.rewards = [], []

    def add(self, obs, reward):
        self.obs.append(obs)
        self.rewards.append(reward)

    def clear(self):
        self.obs.clear()
        self.rewards.clear()

buffer = RolloutBuffer()
curve = []

# %% x14
for step in range(16):
    obs = sim.tensor(4 << 20)
    buffer.add(obs, (obs * 1.0).sum().item())
for _ in range(4):
    for obs in buffer.obs:
        (obs * policy).sum().backward()
    policy.grad = None
curve.append(sum(buffer.rewards) / 16)
buffer.clear()
