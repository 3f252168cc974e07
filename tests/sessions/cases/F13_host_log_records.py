# truth: leak
# world: host
# about: a diffusion simulation logs its field at debug level; a handler keeps all records, and their args keep the arrays
# holder: handler|log
# bytes: 3145728

# %%
import logging
import time
import numpy as np


class RecordKeeper(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


# %%
log = logging.getLogger("diffusion")
log.setLevel(logging.DEBUG)
log.propagate = False
handler = RecordKeeper()
log.addHandler(handler)


def diffuse(field, rate=0.1):
    around = np.roll(field, 1, 0) + np.roll(field, -1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 1)
    return field + rate * (around - 4 * field)


# %% x1
field = np.random.default_rng(0).random((512, 768))
for step in range(48):
    field = diffuse(field)
    log.debug("step %d, field %s", step, field)
    time.sleep(0.025)
print(len(handler.records), "records, spread", field.std())
