# truth: healthy
# world: sim
# about: asyncio tasks in a set, each discarded when it is done
# %%
import asyncio

background = set()

async def embed(n_bytes):
    x = sim.tensor(n_bytes)
    await asyncio.sleep(0)
    return x.sum().item()

# %% x12
tasks = [asyncio.create_task(embed(16 << 20)) for _ in range(3)]
for task in tasks:
    background.add(task)
    task.add_done_callback(background.discard)
scores = [await task for task in tasks]
