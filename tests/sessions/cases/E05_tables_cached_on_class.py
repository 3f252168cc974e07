# truth: healthy
# world: sim
# about: a class keeps a table of positions for each length that comes; seven lengths come in turn, so it grows for seven runs
# %%
class Positions:
    tables = {}

    @classmethod
    def of(cls, length):
        if length not in cls.tables:
            cls.tables[length] = sim.tensor(length << 18)
        return cls.tables[length]

LENGTHS = [64, 128, 96, 160, 32, 256, 192]
step = 0
# %% x18
scores = (sim.tensor(4 << 20) * Positions.of(LENGTHS[step % 7])).sum().item()
step += 1
