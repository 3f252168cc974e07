# truth: healthy
# world: host
# about: asyncio producers fill a bounded queue, workers embed the pages, and the gathered embeddings are joined to one matrix.
# %%
import asyncio
import threading
import numpy as np
rng = np.random.default_rng(9)
P = rng.standard_normal((64, 256)).astype(np.float32)
# %%
async def producer(q, n):
    for i in range(n):
        page = rng.standard_normal((2000, 64)).astype(np.float32)
        await q.put((i, page))
        await asyncio.sleep(0.03)
async def worker(q, done):
    while True:
        i, page = await q.get()
        done[i] = np.maximum(page @ P, 0)       # 2 MiB for each page
        q.task_done()
async def crawl(n=60):
    q, done = asyncio.Queue(maxsize=8), {}
    workers = [asyncio.create_task(worker(q, done)) for _ in range(3)]
    await producer(q, n)
    await q.join()
    for w in workers:
        w.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    return [done[k] for k in sorted(done)]
def in_thread(coro_fn):
    """Jupyter has a running loop already, so use a loop in a thread."""
    box = []
    t = threading.Thread(target=lambda: box.append(asyncio.run(coro_fn())))
    t.start()
    t.join()
    return box.pop()
# %%
pages = in_thread(crawl)
# %%
M = np.vstack(pages)
del pages
centre = M.mean(axis=0)
print(M.shape, "sparsity", float((M == 0).mean()), "centre", centre[:3])
