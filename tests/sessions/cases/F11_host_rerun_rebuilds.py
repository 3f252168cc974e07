# truth: healthy
# world: host
# about: the author tunes a window length by running the same cell eight times; the list is made anew each time and stacked.
# %%
import time
import numpy as np
rng = np.random.default_rng(11)
series = np.cumsum(rng.standard_normal(400_000)).astype(np.float32)
WINDOW, STRIDE = 512, 4000
tried = []
# %% x8
WINDOW += 32
windows = []
for start in range(0, 160_000, STRIDE):
    seg = series[start:start + 1000 + WINDOW]
    view = np.lib.stride_tricks.sliding_window_view(seg, WINDOW)
    windows.append(view - view.mean(axis=1, keepdims=True))
    time.sleep(0.005)
spread = float(np.mean([w.std() for w in windows]))
tried.append((WINDOW, spread))
print("WINDOW", WINDOW, "spread", round(spread, 3), "windows:", len(windows))
# %%
best = min(tried, key=lambda t: t[1])
print("chosen window length:", best)
# %%
X = np.stack([w[0] for w in windows])
u, s, vt = np.linalg.svd(X, full_matrices=False)
print("explained", (s[:3] ** 2 / (s ** 2).sum()).round(3))
