# truth: leak
# world: sim
# about: an asyncio task reads a queue in the background and keeps everything in a local list
# holder: .*collect.*|task|queue
# bytes: 16777216
# %%
import asyncio

async def collect(inbox):
    seen = []
    while True:
        seen.append(await inbox.get())
        inbox.task_done()

inbox = asyncio.Queue()
task = asyncio.create_task(collect(inbox))
await asyncio.sleep(0)  # it starts

# %% x12
await inbox.put(sim.tensor(16 << 20))
await inbox.join()
