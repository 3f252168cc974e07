# truth: healthy
# world: sim
# about: each epoch collects six small batches of predictions, scores them and drops them; four epochs
# %%
scores = []

# %% loop x4
# %%
preds = []
# %% x6
batch = sim.tensor(4 << 20)
preds.append((batch * 0.5).detach())
# %%
scores.append(sum(p.sum().item() for p in preds))
preds = None
# %% end
