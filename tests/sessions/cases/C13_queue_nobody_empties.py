# truth: leak
# world: sim
# about: predictions go into a queue.Queue() for a writer that was never started
# holder: to_write
# bytes: 16777216
# %%
import queue

to_write = queue.Queue()

def predict(batch):
    return (batch * 0.5).detach()

# %% x12
batch = sim.tensor(16 << 20)
to_write.put(("part", predict(batch)))
