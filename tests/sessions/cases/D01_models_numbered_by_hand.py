# truth: leak
# world: sim
# about: the same cell is edited for each of six models: model_1, model_2, …
# holder: model_1 … model_6
# bytes: 268435456
# %%
def train(width):
    return [sim.tensor(width << 20) for _ in range(2)]

# %% id=c1
model_1 = train(128)

# %% id=c1
model_2 = train(128)

# %% id=c1
model_3 = train(128)

# %% id=c1
model_4 = train(128)

# %% id=c1
model_5 = train(128)

# %% id=c1
model_6 = train(128)
