# truth: leak
# world: sim
# about: AverageMeter adds up losses that require grad: its sum holds the graph of every batch
# holder: meter
# bytes: 12582912
# %%
w = sim.tensor(4 << 20, requires_grad=True)

class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum = self.sum + value * n
        self.count += n

meter = AverageMeter()

# %% x12
batch = sim.tensor(12 << 20)
loss = (batch * w).sum()
loss.backward()
w.grad = None
meter.update((batch * w).sum())
