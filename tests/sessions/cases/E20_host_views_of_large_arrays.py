# truth: leak
# world: host
# about: the ten best of each array are kept, and are views of all of it
# holder: best
# bytes: 4000000
# %%
import time

import numpy as np

best = []
# %%
for _ in range(60):
    scores = np.sort(np.random.rand(500_000))
    best.append(scores[-10:])
    time.sleep(0.01)
print(len(best))
