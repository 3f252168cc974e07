# truth: leak
# world: sim
# about: contexts are entered on an ExitStack of the notebook that nobody closes
# holder: stack
# bytes: 20971520
# %%
from contextlib import ExitStack, contextmanager

stack = ExitStack()

@contextmanager
def pinned(n_bytes):
    buffer = sim.tensor(n_bytes)
    yield buffer
    del buffer

# %% x12
staging = stack.enter_context(pinned(20 << 20))
staging.sum().item();
