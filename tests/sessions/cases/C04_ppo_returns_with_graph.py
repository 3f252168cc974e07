# truth: leak
# world: sim
# about: PPO: the mean value of each rollout goes into a dict of statistics, with the graph of the critic
# holder: stats
# bytes: 20971520
# %%
from collections import defaultdict

critic = sim.tensor(16 << 20, requires_grad=True)

# %%
stats = defaultdict(list)


def rollout(n_envs=20):
    return sim.tensor(n_envs << 20)

# %% x12
obs = rollout()
value = (obs * critic).sum()
value.backward()
critic.grad = None
advantage = (obs * critic).sum()
stats["advantage"].append(advantage)
stats["length"].append(20)
