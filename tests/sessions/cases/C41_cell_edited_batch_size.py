# truth: leak
# world: sim
# about: a cell that keeps its embeddings is edited: the batch is twice as large from then on
# holder: kept
# bytes: 0
# %%
encoder = sim.tensor(64 << 20, requires_grad=True)
kept = []

# %% x6 id=embed
batch = sim.tensor(8 << 20)
kept.append((batch * encoder).sum())
# %% x7 id=embed
batch = sim.tensor(16 << 20)  # more texts at once
kept.append((batch * encoder).sum())
