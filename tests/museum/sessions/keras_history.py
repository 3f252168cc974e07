# truth: leak
# world: torch
# entry: keras-history-keeps-model
# about: a search keeps the history of each fit, which keeps the model
# twin: {"before": "histories.append(history)", "after": "histories.append(history.history)"}
# %%
import gc
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch

torch.set_num_threads(1)
x, y = np.random.rand(8, 1024).astype("float32"), np.random.rand(8, 2048).astype("float32")
histories = []

# %% x6
model = keras.Sequential([keras.Input((1024,)), keras.layers.Dense(2048)])
model.compile("sgd", "mse")
history = model.fit(x, y, verbose=0)
histories.append(history)
del model, history
gc.collect();
