# truth: leak
# world: torch
# about: a logger of one's own keeps each dict of metrics that it is handed, and in it the loss with its graph
# holder: logger
# bytes: 16777216
# %%
class Logger:
    def __init__(self):
        self.steps = []

    def log(self, metrics):
        self.steps.append({**metrics, "step": len(self.steps)})

logger = Logger()
weights = torch.randn(1024, 1024, requires_grad=True)
# %% x12
x = torch.randn(2048, 1024)
loss = (x @ weights).sigmoid().mean()
logger.log({"loss": loss, "lr": 0.001})
