# truth: healthy
# world: sim
# about: a rollout in a blink keeps its graphs for the backward pass of the next cell
# %%
w = sim.tensor(1 << 20, requires_grad=True)
# %%
steps = []
for _ in range(60):
    steps.append((sim.tensor(2 << 20) * w).sum())
# %%
loss = sum(steps[1:], steps[0])
loss.backward()
steps = []
