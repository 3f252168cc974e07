# truth: leak
# world: host
# about: each fold's residuals (2 MiB) go into a list that no cell reads, beside work arrays of 10 to 60 MiB that are freed
# holder: residuals
# bytes: 2097152
# %%
import numpy as np

rng = np.random.default_rng(7)
residuals, scores = [], []
# %% x20
n = int(rng.integers(1300, 8000))
features = rng.random((n, 1000))
target = rng.random(n)
weights = features[:1000].mean(axis=0)
r = np.outer(target[:512] - features[:512] @ weights, np.ones(512))
residuals.append(r)
scores.append(float(np.abs(r).mean()))
