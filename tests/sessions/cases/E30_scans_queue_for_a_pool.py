# truth: undecided
# world: sim
# about: imap reads all scans ahead of two slow workers: they pile up in the pool's queue, then all are freed
# %%
from multiprocessing.pool import ThreadPool
from time import sleep

from gpumem import sim

sim.use(8 << 30)


def segment(scan):
    sleep(0.06)
    return scan.nbytes


def scans(n):
    for _ in range(n):
        sleep(0.01)
        yield sim.tensor(24 << 20)


# %%
with ThreadPool(2) as pool:
    volume = sum(pool.imap(segment, scans(40)))
