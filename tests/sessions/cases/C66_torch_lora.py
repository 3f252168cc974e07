# truth: healthy
# world: torch
# about: LoRA by hand: the base is frozen, two small matrices are trained, the losses are kept as floats
# %%
class LoRA(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T

model = nn.Sequential(LoRA(nn.Linear(1024, 1024)), nn.GELU(), LoRA(nn.Linear(1024, 256)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
losses = []

# %% x12
for _ in range(2):
    x = torch.randn(256, 1024)
    loss = (model(x) - x[:, :256]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
