# truth: healthy
# world: sim
# about: a window over the last 16 frames
# %%
frames = []
# %% x14
frames = frames[-15:] + [sim.tensor(24 * MB)]
# %%
print(len(frames))
