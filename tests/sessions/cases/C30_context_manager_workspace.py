# truth: healthy
# world: sim
# about: a context manager lends a workspace and frees it; one run fails inside it
# %%
from contextlib import contextmanager

n = 0

@contextmanager
def workspace(n_bytes):
    buffer = sim.tensor(n_bytes)
    try:
        yield buffer
    finally:
        del buffer

# %% x12
n += 1
try:
    with workspace(200 << 20) as scratch:
        if n == 5:
            raise ValueError("singular matrix")
        scratch.sum().item()
except ValueError as e:
    message = str(e)
scratch = None
