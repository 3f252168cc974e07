# truth: leak
# world: host
# entry: ipywidgets-registry
# about: a cell makes a new button with each run, whose callback holds data
# twin: {"before": "# cure", "after": "button.close()"}
# %%
import gc

import ipywidgets
import numpy as np

button = ipywidgets.Button()

# %% x12
# cure
data = np.random.rand(1 << 20)
button = ipywidgets.Button(description="Show")
button.on_click(lambda _, data=data: print(data.mean()))
gc.collect();
