# truth: leak
# world: sim
# about: recurrent policy: the hidden state is carried over episodes without detach, each keeps the graph of all before
# holder: hidden
# bytes: 16777216
# %%
w = sim.tensor(8 << 20, requires_grad=True)
hidden = sim.tensor(4 << 20)

def episode(hidden, observation):
    return hidden * w + observation * w

# %% x12
observation = sim.tensor(8 << 20)
hidden = episode(hidden, observation)
reward = hidden.detach().sum().item()
