# truth: healthy
# world: torch
# about: LBFGS with a history of six: two vectors of the parameters' size come with each step until it is full; 18 runs
# %%
x = torch.randn(2 << 20, requires_grad=True)
target = torch.randn(2 << 20)
scale = torch.linspace(0.1, 10.0, 2 << 20)
optimizer = torch.optim.LBFGS([x], lr=0.1, max_iter=1, history_size=6)

def closure():
    optimizer.zero_grad()
    loss = (scale * (x - target) ** 2).sum()
    loss.backward()
    return loss

curve = []

# %% x18
curve.append(optimizer.step(closure).item())
