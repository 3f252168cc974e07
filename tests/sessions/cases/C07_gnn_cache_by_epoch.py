# truth: leak
# world: sim
# about: GNN: historical embeddings by (epoch, block): a key of an old epoch is never looked up again
# holder: embeddings
# bytes: 25165824
# %%
w = sim.tensor(4 << 20, requires_grad=True)
embeddings = {}
epoch = 0

def embed(block):
    key = (epoch, block)
    if key not in embeddings:
        embeddings[key] = (sim.tensor(6 << 20) * w).detach()
    return embeddings[key]

# %% x12
epoch += 1
h = sum(embed(block).sum().item() for block in range(4))
