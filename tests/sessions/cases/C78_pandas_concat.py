# truth: undecided
# world: host
# about: pandas: each run loads a day and appends it to one frame; ten days so far
# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
log = pd.DataFrame()


def load(day):
    return pd.DataFrame(rng.random((262_144, 4)), columns=list("abcd")).assign(day=day)

# %% x10
day = len(log) // 262_144
log = pd.concat([log, load(day)], ignore_index=True)
