# truth: leak
# world: torch
# about: actor-critic: advantages are kept for a plot, with the graph of the critic
# holder: advantages
# bytes: 16777216
# %%
critic = nn.Sequential(nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1))
advantages = []

def rollout(n=2048):
    return torch.randn(n, 1024), torch.randn(n)

# %% x12
obs, returns = rollout()
advantage = returns - critic(obs).squeeze(-1)
advantages.append(advantage)
