# truth: healthy
# world: sim
# about: a list with the last six states of a simulation; the oldest is popped; 18 runs
# %%
window = []
energy = []

# %% x18
state = sim.tensor(20 << 20)
window.append(state)
if len(window) > 6:
    window.pop(0)
energy.append(sum(s.sum().item() for s in window))
