# truth: leak
# world: sim
# about: a pool's only worker waits for ever, and pictures queue up behind it
# holder: pool
# bytes: 33554432
# %%
import threading
from concurrent.futures import ThreadPoolExecutor

from gpumem import sim

sim.use(4 << 30)
online = threading.Event()
pool = ThreadPoolExecutor(1)


def upload(picture):
    online.wait()
    return picture.nbytes


# %% x12
picture = sim.tensor(32 << 20)
pool.submit(upload, picture)
del picture
