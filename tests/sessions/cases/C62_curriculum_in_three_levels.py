# truth: healthy
# world: sim
# about: a curriculum: five runs with short texts, five with longer ones, five with the longest; nothing is collected
# %%
w = sim.tensor(8 << 20, requires_grad=True)
lengths = iter([128] * 5 + [256] * 5 + [512] * 5)

# %% x15
length = next(lengths)
tokens = sim.tensor(length * (1 << 20) // 4)
logits = tokens * w
logits.sum().backward()
w.grad = None
