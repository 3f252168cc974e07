# truth: leak
# world: host
# entry: matplotlib-open-figures
# about: a cell makes a figure with each run and never closes it
# %%
import matplotlib.pyplot as plt
import numpy as np

# %% x12
fig, ax = plt.subplots()
ax.imshow(np.random.rand(1024, 1024));
# cure
