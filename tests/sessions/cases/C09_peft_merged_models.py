# truth: leak
# world: sim
# about: PEFT: the base is merged with adapters of different scale, and every merged model is kept in a list
# holder: candidates
# bytes: 419430400
# %%
GB = 1 << 30
base = sim.tensor(400 << 20)
adapter = sim.tensor(4 << 20)

def merge(scale):
    return {"weight": base * scale, "scale": scale}

candidates = []
scale = 0.0

# %% x10
scale += 0.1
merged = merge(scale)
accuracy = merged["weight"].sum().item()
candidates.append((accuracy, merged))
