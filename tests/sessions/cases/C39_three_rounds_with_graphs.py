# truth: leak
# world: sim
# about: predictions = [] and nine appends with their graphs, three times over
# holder: predictions
# bytes: 50331648
# %%
w = sim.tensor(4 << 20, requires_grad=True)

# %% loop x3
# %%
predictions = []
# %% x9
prediction = sim.tensor(48 << 20) * w
predictions.append(prediction.sum())
# %% end
