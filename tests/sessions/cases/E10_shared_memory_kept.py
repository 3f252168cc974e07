# truth: leak
# world: host
# about: each run gives a worker a block of shared memory, and nobody unlinks the blocks
# holder: blocks
# bytes: 16777216
# %%
from multiprocessing.shared_memory import SharedMemory

import numpy as np

blocks = []
numbers = np.random.default_rng(0)
# %% x12
batch = numbers.random((2048, 1024))
block = SharedMemory(create=True, size=batch.nbytes)
np.ndarray(batch.shape, batch.dtype, buffer=block.buf)[:] = batch
blocks.append(block)
# %%
for block in blocks:
    block.close()
    block.unlink()
