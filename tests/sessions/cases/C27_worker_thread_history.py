# truth: leak
# world: sim
# about: a worker thread takes batches from a queue and keeps all its results in a local list
# holder: .*(worker|history).*
# bytes: 16777216
# %%
import queue
import threading

inbox = queue.Queue()

def worker():
    history = []
    while True:
        n_bytes = inbox.get()
        history.append(sim.tensor(n_bytes))
        inbox.task_done()

threading.Thread(target=worker, daemon=True, name="scorer").start()

# %% x12
inbox.put(16 << 20)
inbox.join()
