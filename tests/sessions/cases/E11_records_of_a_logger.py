# truth: leak
# world: sim
# about: a handler in memory keeps each record, and the loss that was to be formatted
# holder: handler.*
# bytes: 33554432
# %%
import logging
import logging.handlers

handler = logging.handlers.MemoryHandler(capacity=100_000)
log = logging.getLogger("train")
log.addHandler(handler)
log.setLevel("INFO")
log.propagate = False
w = sim.tensor(16 << 20, requires_grad=True)
# %% x10
for _ in range(2):
    loss = (sim.tensor(16 << 20) * w).sum()
    log.info("loss %s", loss)
