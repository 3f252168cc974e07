# truth: leak
# world: sim
# about: each run keeps copies of the layers, made in a comprehension
# holder: checkpoints
# bytes: 50331648
# %%
layers = [sim.tensor(24 * MB, requires_grad=True) for _ in range(2)]
checkpoints = []
# %% x12
checkpoints.append([layer.detach() * 1.0 for layer in layers])
