# truth: leak
# world: host
# about: one cell, one loop; each epoch's rows are kept as dicts, some 400 MiB in all
# holder: rows
# bytes: 0
# %%
import random

rows = []
# %%
for epoch in range(400):
    rows.append([{"t": n, "value": random.random(), "user": f"u{random.random()}"} for n in range(3000)])
