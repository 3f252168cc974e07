# truth: undecided
# world: sim
# about: a corpus of sixteen parts is embedded, a part a run, to build an index; ten parts so far
# %%
parts = iter(range(16))
index = []

def encode(part):
    with sim.no_grad():
        return sim.tensor(16 << 20) * 0.5

# %% x10
part = next(parts)
index.append(encode(part))
