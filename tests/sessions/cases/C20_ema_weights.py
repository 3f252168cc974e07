# truth: healthy
# world: sim
# about: an exponential moving average of the weights: a new list of tensors takes the place of the old
# %%
params = [sim.tensor(24 << 20, requires_grad=True) for _ in range(4)]
ema = [p.detach() + 0 for p in params]
decay = 0.999

# %% x14
for p in params:
    (sim.tensor(8 << 20) * p).sum().backward()
    p.grad = None
with sim.no_grad():
    ema = [e * decay + p * (1 - decay) for e, p in zip(ema, params)]
