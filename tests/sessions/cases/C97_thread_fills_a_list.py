# truth: leak
# world: sim
# about: a worker thread appends what it gets to a list of the notebook, while an evaluation that does not know the list runs
# holder: results
# bytes: 16777216
# %%
import queue
import threading

inbox = queue.Queue()
results = []

def worker():
    while True:
        n_bytes = inbox.get()
        results.append(sim.tensor(n_bytes))
        inbox.task_done()

thread = threading.Thread(target=worker, daemon=True, name="scorer")
thread.start()

# %%
def evaluate(n):
    inbox.put(16 << 20)
    inbox.join()
    return n

# %% x12
accuracy = evaluate(3)
