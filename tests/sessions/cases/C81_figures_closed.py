# truth: healthy
# world: host
# about: a figure is drawn, saved into memory and closed in each run; 10 runs
# %%
import io

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

image = np.random.default_rng(0).random((800, 1200))

# %% x10
fig, ax = plt.subplots(figsize=(12, 8))
ax.imshow(image)
png = io.BytesIO()
fig.savefig(png, format="png")
plt.close(fig)
