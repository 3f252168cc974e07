# truth: leak
# world: torch
# about: a small network of one's own keeps each loss with its graph, some 2.5 MiB a step on the CPU
# holder: net
# bytes: 2621440
# %%
class Autoencoder:
    def __init__(self):
        self.encode = torch.randn(512, 256, requires_grad=True)
        self.decode = torch.randn(256, 512, requires_grad=True)
        self.curve = []

    def loss(self, x):
        error = ((x @ self.encode).sigmoid() @ self.decode - x).pow(2).mean()
        self.curve.append(error)
        return error

net = Autoencoder()
# %% x12
error = net.loss(torch.randn(512, 512))
