# truth: healthy
# world: sim
# about: early stopping: a copy of the best weights is replaced whenever the validation loss falls
# %%
model = {f"layer{i}": sim.tensor(32 << 20, requires_grad=True) for i in range(4)}
best_loss, best_state, patience = float("inf"), None, 0
val_losses = iter([0.9, 0.7, 0.6, 0.65, 0.5, 0.52, 0.44, 0.43, 0.45, 0.46, 0.47, 0.42, 0.44, 0.45])

# %% x14
for weight in model.values():
    (sim.tensor(4 << 20) * weight).sum().backward()
    weight.grad = None
val_loss = next(val_losses)
if val_loss < best_loss:
    best_loss, patience = val_loss, 0
    best_state = {name: weight.detach() + 0 for name, weight in model.items()}
else:
    patience += 1
