# truth: undecided
# world: sim
# about: a replay buffer with room for 10,000 transitions of 32 MiB on 8 GiB: meant, but it does not fit when full
# %%
from collections import deque

memory = deque(maxlen=10_000)

# %% x14
state, next_state = sim.tensor(16 << 20), sim.tensor(16 << 20)
memory.append((state, 0, 1.0, next_state))
