# truth: healthy
# world: sim
# alarms: allowed
# about: a leak is released by name, and nothing runs after that
# %%
head = sim.tensor(8 * MB, requires_grad=True)
penalties = []
# %% x6
penalties.append((sim.tensor(300 * MB) * head).sum())
# %%
%gpumem release penalties
