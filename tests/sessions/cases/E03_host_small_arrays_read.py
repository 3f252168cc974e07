# truth: healthy
# world: host
# about: the predictions of each month (2 MiB) are collected, and every run draws all of them once more
# %%
import numpy as np

rng = np.random.default_rng(7)
predictions = []
# %% x16
month = rng.random((512, 512))
predictions.append(month.cumsum(axis=1))
table = np.stack([it[:, -1] for it in predictions])
print(table.mean(axis=1).round(1))
