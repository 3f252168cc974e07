# truth: leak
# world: sim
# about: a function of another cell collects what it is given, through two more functions
# holder: _records
# bytes: 16777216
# %%
_records = []

def record(**figures):
    _records.append(figures)

def evaluate(batch):
    features = (batch * 0.5).detach()
    record(features=features, level=features.sum().item())

def run_epoch():
    for _ in range(2):
        evaluate(sim.tensor(8 << 20))

# %% x12
run_epoch()
