# truth: leak
# world: sim
# about: one loop logs a score and a picture to two lists of a dict: only the second append keeps memory
# holder: board
# bytes: 12582912
# meant: 67108864
# %%
from time import sleep

from gpumem import sim

sim.use(8 << 30)
MIB = 1 << 20
# %%
generator = sim.tensor(64 * MIB)
board = {"score": [], "picture": []}
for epoch in range(30):
    picture = sim.tensor(12 * MIB)
    board["score"].append(1 / (epoch + 2))
    board["picture"].append(picture)
    sleep(0.02)
