# truth: leak
# world: sim
# about: early stopping by keeping a copy of the weights after every epoch, to choose later
# holder: states
# bytes: 134217728
# %%
model = {f"layer{i}": sim.tensor(32 << 20, requires_grad=True) for i in range(4)}
states = {}
epoch = 0

def snapshot(model):
    return {name: weight.detach() + 0 for name, weight in model.items()}

# %% x14
for weight in model.values():
    (sim.tensor(4 << 20) * weight).sum().backward()
    weight.grad = None
states[epoch] = snapshot(model)
epoch += 1
