# truth: leak
# world: sim
# about: logging.exception into a MemoryHandler that is rarely flushed: each record has its traceback, with the batch
# holder: buffer|log|logger|handler|logging.*
# bytes: 25165824
# %%
import logging
import logging.handlers

log = logging.getLogger("train")
log.propagate = False
handler = logging.handlers.MemoryHandler(capacity=100_000, flushLevel=logging.CRITICAL)
log.addHandler(handler)

def step(batch):
    raise ValueError("loss is nan")

# %% x12
try:
    step(sim.tensor(24 << 20))
except ValueError:
    log.exception("step failed")
