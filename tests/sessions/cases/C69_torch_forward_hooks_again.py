# truth: leak
# world: torch
# about: each run registers the forward hook again; every hook keeps a copy of the features in its closure
# holder: net|model
# bytes: 8388608
# %%
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 8))

def watch(layer):
    features = {}

    def hook(module, inputs, output):
        features["last"] = output.detach().clone()

    layer.register_forward_hook(hook)
    return features

# %% x12
features = watch(net[0])
with torch.no_grad():
    y = net(torch.randn(2048, 256))
