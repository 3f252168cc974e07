# truth: leak
# world: host
# about: rows as dicts, as a reader of JSON gives them, are added to a list that only grows
# holder: history
# bytes: 0
# %%
import random

random.seed(0)
history = []
# %% x12
rows = [{"t": n, "user": f"u{random.random()}", "value": random.random()} for n in range(6000)]
history.extend(rows)
