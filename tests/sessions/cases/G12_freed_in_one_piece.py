# truth: healthy
# world: sim
# about: a large tensor is deleted, and a small one takes part of its segment; the rest is one free piece
# %%
big = sim.tensor(300 * MB)
# %%
del big
x = sim.tensor(30 * MB)
# %% x6
y = x * 1
del y
