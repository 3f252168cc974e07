# truth: healthy
# world: sim
# about: a loop that is over in a blink loads what the next cells train on
# %%
w = sim.tensor(1 << 20, requires_grad=True)
# %%
batches = []
for _ in range(60):
    batches.append(sim.tensor(8 << 20))
# %% x3
for batch in batches:
    loss = (batch * w).sum()
    loss.backward()
