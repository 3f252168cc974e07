# truth: leak
# world: torch
# entry: hyperopt-trials-keep-results
# about: a search goes on with the same trials, and each result has its model
# twin: {"before": "\"model\": model", "after": "\"n\": 1"}
# %%
import hyperopt
import torch
from torch import nn

torch.set_num_threads(1)


def objective(lr):
    model = nn.Linear(1024, 2048)
    return {"loss": lr, "status": hyperopt.STATUS_OK, "model": model}


trials = hyperopt.Trials()
space = hyperopt.hp.uniform("lr", 0, 1)

# %% x12
n = len(trials.trials) + 1
best = hyperopt.fmin(
    objective, space, hyperopt.rand.suggest, n, trials=trials, show_progressbar=False
)
