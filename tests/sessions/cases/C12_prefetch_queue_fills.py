# truth: healthy
# world: sim
# about: a prefetch queue of eight batches fills up; once it is full the oldest batch makes room
# %%
import queue

prefetched = queue.Queue(maxsize=8)

# %% x16
if prefetched.full():
    batch = prefetched.get()
    del batch
prefetched.put(sim.tensor(16 << 20))
