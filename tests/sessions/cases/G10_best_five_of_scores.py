# truth: healthy
# world: sim
# about: the five best checkpoints by score; the list is sorted and cut
# %%
import random
random.seed(1)
best = []
# %% x16
acc = random.random()
ckpt = sim.tensor(80 * MB)
best.append((acc, ckpt))
best = sorted(best, key=lambda it: -it[0])[:5]
