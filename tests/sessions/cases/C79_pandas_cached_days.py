# truth: leak
# world: host
# about: pandas: functools.cache on the function that loads a day, and each run asks for another day
# holder: load
# bytes: 16777216
# %%
import functools

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)


@functools.cache
def load(day):
    return pd.DataFrame(rng.random((1 << 20, 2)), columns=["price", "volume"])


day = 0
means = []

# %% x12
day += 1
prices = load(day)
means.append(prices["price"].mean())
