# truth: leak
# world: host
# entry: mock-keeps-calls
# about: a logger is replaced by a mock, which keeps the arguments of every call
# %%
from unittest.mock import Mock

import numpy as np

log = Mock()

# %% x12
# cure
for _ in range(4):
    log(np.random.rand(1 << 18))
