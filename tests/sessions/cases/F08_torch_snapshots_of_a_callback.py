# truth: healthy
# world: torch
# about: callbacks are registered once and gone through at each step; one of them keeps weight snapshots which are averaged later.
# %%
import torch
import torch.nn as nn
torch.set_num_threads(1)
torch.manual_seed(0)
# %%
class Callback:
    def on_step(self, trainer, step, loss): ...
class Printer(Callback):
    def on_step(self, trainer, step, loss):
        if step % 20 == 0:
            print(f"[{step}] {loss:.4f}")
class Snapshots(Callback):
    """keeps flat copies of the weights for SWA"""
    def __init__(self):
        self.flat = []
    def on_step(self, trainer, step, loss):
        vec = nn.utils.parameters_to_vector(trainer.model.parameters())
        self.flat.append(vec.detach().clone())
class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, list(callbacks)
        self.opt = torch.optim.SGD(model.parameters(), lr=0.02)
    def fit(self, steps):
        for step in range(steps):
            x = torch.randn(256, 300)
            loss = (self.model(x) - x[:, :1]).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            for cb in self.callbacks:
                cb.on_step(self, step, loss.item())
# %%
snaps = Snapshots()
trainer = Trainer(nn.Sequential(nn.Linear(300, 1200), nn.Tanh(), nn.Linear(1200, 1)), [Printer(), snaps])
trainer.fit(60)
# %%
swa = torch.stack(snaps.flat[20:]).mean(0)
nn.utils.vector_to_parameters(swa, trainer.model.parameters())
print("averaged", len(snaps.flat) - 20, "snapshots; norm", swa.norm().item())
