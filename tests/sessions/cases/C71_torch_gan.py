# truth: healthy
# world: torch
# about: a small GAN: discriminator and generator steps in turn; the losses are floats, one sample keeps its name
# %%
from torch.nn import functional as F

G = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784))
D = nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters(), 2e-4), torch.optim.Adam(D.parameters(), 2e-4)
history = {"d": [], "g": []}

# %% x12
for _ in range(2):
    real, fake = torch.rand(256, 784), G(torch.randn(256, 64))
    loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    history["d"].append(loss_d.item())
    history["g"].append(loss_g.item())
sample = fake.detach()
