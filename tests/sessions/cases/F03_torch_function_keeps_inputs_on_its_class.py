# truth: leak
# world: torch
# about: a custom autograd Function keeps its inputs in a list on the class instead of ctx
# holder: FakeQuant.*
# bytes: 0

# %%
import torch
import torch.nn as nn

torch.set_num_threads(1)


class FakeQuant(torch.autograd.Function):
    inputs = []

    @staticmethod
    def forward(ctx, x, bits):
        scale = x.abs().max() / (2 ** (bits - 1) - 1)
        FakeQuant.inputs.append(x)
        ctx.limit = scale * (2 ** (bits - 1) - 1)
        return torch.round(x / scale) * scale

    @staticmethod
    def backward(ctx, grad):
        x = FakeQuant.inputs[-1]
        return grad * (x.abs() <= ctx.limit), None


class QuantMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(256, 1536)
        self.fc2 = nn.Linear(1536, 10)

    def forward(self, x):
        z = self.fc1(x)
        z = FakeQuant.apply(z, 4)
        return self.fc2(torch.relu(z))


# %%
qmodel = QuantMLP()
opt = torch.optim.Adam(qmodel.parameters(), lr=1e-3)
data = torch.randn(4000, 256)
target = torch.randint(0, 10, (4000,))
for epoch in range(10):
    perm = torch.randperm(4000)
    for idx in perm.split(400):
        loss = nn.functional.cross_entropy(qmodel(data[idx]), target[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
