# truth: leak
# world: sim
# about: the training cell and the validation cell append to the same history, in turns
# holder: history
# bytes: 12582912
# %%
w = sim.tensor(4 << 20, requires_grad=True)
history = []

# %% loop x8
# %%
train_loss = (sim.tensor(12 << 20) * w).sum()
history.append(("train", train_loss))
# %%
val_loss = (sim.tensor(12 << 20) * w).sum()
history.append(("val", val_loss))
# %% end
