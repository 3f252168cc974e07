# truth: leak
# world: torch
# entry: gpytorch-prediction-caches
# about: the models of a search are kept, and each keeps what it computed to predict
# twin: {"before": "models.append(model)", "after": "models.append(model.train())"}
# %%
import gpytorch
import torch

torch.set_num_threads(1)


class Regression(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


models = []

# %% x8
x = torch.rand(2048)
model = Regression(x, x.sin(), gpytorch.likelihoods.GaussianLikelihood()).eval()
with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
    variance = model(torch.rand(16)).variance.mean().item()
models.append(model)
