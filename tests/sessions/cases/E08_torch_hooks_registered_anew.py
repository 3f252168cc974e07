# truth: leak
# world: torch
# about: each run registers hooks on all modules again, and each hook stores what it sees
# holder: model
# bytes: 0
# %%
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))

def store_into(store):
    def hook(module, given, output):
        store.append(output.detach().clone())

    return hook

# %% x10
store = []
for module in model.modules():
    module.register_forward_hook(store_into(store))
y = model(torch.randn(256, 512))
