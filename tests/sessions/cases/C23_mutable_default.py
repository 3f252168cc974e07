# truth: leak
# world: sim
# about: def collect(batch, seen=[]): the default list lives as long as the function
# holder: collect
# bytes: 16777216
# %%
def collect(batch, seen=[]):
    seen.append(batch)
    return len(seen)

# %% x12
n = collect(sim.tensor(16 << 20))
