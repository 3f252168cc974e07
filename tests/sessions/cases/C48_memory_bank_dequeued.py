# truth: healthy
# world: sim
# about: contrastive learning in one cell of 48 steps: the memory bank holds the 16 latest keys
# %%
import gpumem

encoder = sim.tensor(4 << 20, requires_grad=True)
bank = []

# %%
for step in gpumem.steps(range(48)):
    with sim.no_grad():
        key = sim.tensor(12 << 20) * encoder
    bank.append(key)
    if len(bank) > 16:
        del bank[0]
