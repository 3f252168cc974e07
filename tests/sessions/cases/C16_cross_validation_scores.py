# truth: healthy
# world: sim
# about: cross-validation: a model for each of five folds, marked as steps; the scores stay; run for three settings
# %%
import gpumem

table = {}

def fit(fold, depth):
    model = [sim.tensor(40 << 20) for _ in range(depth)]
    return sum(layer.sum().item() for layer in model) + fold

# %% x3
depth = len(table) + 2
scores = []
for fold in gpumem.steps(range(5)):
    scores.append(fit(fold, depth))
table[depth] = sum(scores) / len(scores)
