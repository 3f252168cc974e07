# truth: leak
# world: sim
# about: globals()[f"model_{n}"]: each run of a sweep leaves its model under another name
# holder: model_1 … model_12
# bytes: 268435456
# %%
n = 0

def train(width):
    return [sim.tensor(width << 20) for _ in range(2)]

# %% x12
n += 1
globals()[f"model_{n}"] = train(128)
