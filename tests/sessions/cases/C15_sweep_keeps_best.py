# truth: healthy
# world: sim
# about: a hyperparameter sweep that keeps the scores, and the one best model
# %%
import random

random.seed(0)
best_score, best_model = -1.0, None
results = []

def build(width):
    return [sim.tensor(width << 20, requires_grad=True) for _ in range(3)]

# %% x14
width = random.choice([32, 48, 64, 96])
model = None
model = build(width)
score = random.random()
results.append((width, score))
if score > best_score:
    best_score, best_model = score, model
