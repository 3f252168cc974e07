# truth: leak
# world: sim
# about: outputs are kept with their graphs; every fourth run ends with an assertion that fails
# holder: outputs
# bytes: 12582912
# %%
w = sim.tensor(4 << 20, requires_grad=True)
outputs = []

# %% x16
output = (sim.tensor(12 << 20) * w).sum()
outputs.append(output)
assert len(outputs) % 4, "a class is missing in the batch"
