# truth: healthy
# world: host
# about: each run draws a figure of its own and closes it; the last ones wait for the collector
# %%
import matplotlib
matplotlib.use('agg')
import matplotlib.pyplot as plt, numpy as np
# %% x10
img = np.random.rand(1200, 1200)
fig, ax = plt.subplots(figsize=(8, 8))
ax.imshow(img)
fig.canvas.draw()
plt.close(fig)
