# truth: leak
# world: sim
# about: asyncio tasks go into a set, as the documentation advises, but nobody discards them: each keeps its result
# holder: background
# bytes: 16777216
# %%
import asyncio

background = set()

async def embed(n_bytes):
    await asyncio.sleep(0)
    return sim.tensor(n_bytes)

# %% x12
task = asyncio.create_task(embed(16 << 20))
background.add(task)
await task;
