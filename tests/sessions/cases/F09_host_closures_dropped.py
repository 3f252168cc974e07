# truth: healthy
# world: host
# about: closures holding 4 MiB windows are made in a loop, all are called by the next cell as a lazy pipeline, then dropped.
# %%
import time
import numpy as np
rng = np.random.default_rng(7)
signal = rng.standard_normal(40 * 250_000 + 250_000).astype(np.float32)
# %%
def make_task(window, k):
    kernel = np.hanning(k).astype(np.float32)
    kernel /= kernel.sum()

    def task():
        return float(np.abs(np.convolve(window, kernel, mode="same")).mean())
    return task

tasks = []
for i in range(40):
    w = signal[i * 250_000:(i + 2) * 250_000].astype(np.float64)   # a copy of its own
    tasks.append(make_task(w, 5 + i % 4))
    time.sleep(0.03)
print(len(tasks), "tasks prepared")
# %%
results = [t() for t in tasks]
del tasks
print("mean amplitude", np.mean(results))
# %%
# single use closures: each is forgotten with the next turn
total = 0.0
for i in range(30):
    f = make_task(rng.standard_normal(200_000), 9)
    total += f()
    time.sleep(0.01)
print(total)
