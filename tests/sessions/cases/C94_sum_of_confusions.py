# truth: healthy
# world: sim
# about: confusion matrices are added up into one, per class of a dict with four keys; 14 runs
# %%
sums = {}
runs = 0

# %% x14
runs += 1
for name in ("cat", "dog", "bird", "fish"):
    matrix = (sim.tensor(8 << 20) * 1.0).detach()
    sums[name] = matrix if name not in sums else sums[name] + matrix
del matrix
