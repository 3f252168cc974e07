# truth: leak
# world: sim
# about: contrastive learning in one cell with marks: the memory bank is never dequeued, and keys were not detached
# holder: bank
# bytes: 12582912
# %%
import gpumem

encoder = sim.tensor(4 << 20, requires_grad=True)
bank = []

# %%
for step in range(32):
    images = sim.tensor(12 << 20)
    key = (images * encoder).sum()
    bank.append(key)
    gpumem.mark()
