# truth: leak
# world: host
# entry: matplotlib-axes-keep-artists
# about: each run draws a new image over the one before
# %%
import matplotlib.pyplot as plt
import numpy as np

fig, ax = plt.subplots()

# %% x12
# cure
image = np.random.rand(1024, 1024)
ax.imshow(image)
fig.savefig("image.png")
del image
