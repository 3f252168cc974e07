# truth: healthy
# world: host
# about: rows as dicts, a vocabulary that is full, and the metrics of each step: nothing adds up to much
# %%
import random

vocabulary, metrics = {}, []
# %% x14
rows = [{"t": n, "word": f"w{random.randint(0, 5000)}"} for n in range(8000)]
for row in rows:
    vocabulary.setdefault(row["word"], len(vocabulary))
metrics.extend(random.random() for _ in range(500))
print(len(vocabulary), len(metrics))
