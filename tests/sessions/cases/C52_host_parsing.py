# truth: healthy
# world: host
# about: text is generated, parsed and summed up on the host; a dict of a few sums stays; 12 runs
# %%
import csv
import io
import json

sums = {}

# %% x12
day = len(sums)
text = "\n".join(f"{i},{i * day % 97},{i / 7:.4f}" for i in range(120_000))
rows = list(csv.reader(io.StringIO(text)))
sums[day] = sum(float(row[2]) for row in rows)
backup = json.loads(json.dumps(rows[:50_000]))
del text, rows, backup
