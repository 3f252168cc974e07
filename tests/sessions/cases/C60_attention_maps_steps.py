# truth: leak
# world: sim
# about: attention maps of all layers are stored for a plot in each step of a loop, and never read
# holder: maps
# bytes: 16777216
# %%
from collections import defaultdict

import gpumem

maps = defaultdict(list)

def attention(layer, x):
    weights = (x * 0.1).detach()
    maps[f"layer{layer}"].append(weights)
    return x

def forward(x):
    for layer in range(4):
        x = attention(layer, x)
    return x.sum().item()

# %%
total = 0.0
for _ in gpumem.steps(range(30)):
    total += forward(sim.tensor(4 << 20))
