# truth: leak
# world: host
# about: a stream is split with itertools.tee and only one branch is read, so the other branch keeps every block
# holder: replay|live
# %%
import itertools
import numpy as np

def sensor(n_blocks, size=250_000, seed=3):
    gen = np.random.default_rng(seed)
    for b in range(n_blocks):
        yield gen.normal(loc=np.sin(b / 10), size=size)

live, replay = itertools.tee(sensor(120))
# %%
rms = [0.0] * 120
for b, block in enumerate(live):
    rms[b] = float(np.sqrt(np.mean(block * block)))
print("loudest block:", rms.index(max(rms)), "rms", round(max(rms), 3))
# %%
print("stream started with", next(replay)[:3].round(2))
