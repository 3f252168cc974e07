# truth: healthy
# world: host
# about: pandas: a frame is joined, grouped and pivoted anew in each run, the result takes the same name
# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
orders = pd.DataFrame({"user": rng.integers(0, 5_000, 400_000), "amount": rng.random(400_000)})
users = pd.DataFrame({"user": np.arange(5_000), "age": rng.integers(18, 90, 5_000)})
quantile = 0.0

# %% x12
quantile += 0.05
joined = orders.merge(users, on="user")
joined = joined[joined["amount"] > joined["amount"].quantile(quantile)]
features = joined.groupby("user").agg(total=("amount", "sum"), age=("age", "first"))
