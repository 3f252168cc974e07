# truth: undecided
# world: sim
# about: four different configurations, each in an edit of the cell; their outputs are kept to be compared
# %%
outputs = {}

def run(name, width):
    return sim.tensor(width << 20)

# %% id=exp
outputs["baseline"] = run("baseline", 96)
# %% id=exp
outputs["wider"] = run("wider", 128)
# %% id=exp
outputs["deeper"] = run("deeper", 112)
# %% id=exp
outputs["dropout"] = run("dropout", 96)
