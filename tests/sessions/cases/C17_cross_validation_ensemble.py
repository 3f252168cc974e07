# truth: healthy
# world: sim
# about: cross-validation: the five models of the folds are an ensemble; the cell starts it anew each time
# %%
def fit(fold):
    return [sim.tensor(48 << 20) for _ in range(2)]

# %% x6
ensemble = []
for fold in range(5):
    ensemble.append(fit(fold))
score = sum(layer.sum().item() for member in ensemble for layer in member)
