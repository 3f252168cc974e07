# truth: undecided
# world: sim
# about: history = history[-100:] bounds a list that has twelve entries so far
# %%
history = []

# %% x12
features = (sim.tensor(12 << 20) * 0.5).detach()
history.append(features)
history = history[-100:]
