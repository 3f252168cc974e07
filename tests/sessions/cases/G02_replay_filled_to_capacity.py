# truth: undecided
# world: sim
# about: one cell fills a replay buffer: while len(replay) < 100 (a list, overwritten when it is full); the next cell trains on random samples
# %%
import random, time
CAPACITY = 100
replay, pos = [], 0
q = sim.tensor(8 * MB, requires_grad=True)

def push(item):
    global pos
    if len(replay) < CAPACITY:
        replay.append(item)
    else:
        replay[pos % CAPACITY] = item
    pos += 1
# %%
while len(replay) < CAPACITY:
    time.sleep(0.004)
    push(sim.tensor(6 * MB))
print(f"buffer filled: {len(replay)}")
# %% x10
for _ in range(4):
    push(sim.tensor(6 * MB))
    loss = sum((o * q).sum().item() for o in random.sample(replay, 8))
print(loss)
