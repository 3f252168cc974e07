# truth: leak
# world: sim
# about: a loop that is over in a blink; a function that it calls keeps each loss with its graph
# holder: history
# bytes: 2097152
# %%
w = sim.tensor(1 << 20, requires_grad=True)
history = []

def step():
    loss = (sim.tensor(2 << 20) * w).sum()
    history.append(loss)

# %%
for _ in range(200):
    step()
