# truth: leak
# world: torch
# entry: optuna-user-attributes
# about: each trial stores its model as a user attribute
# twin: {"before": "trial.set_user_attr(\"model\", model)", "after": "pass"}
# %%
import optuna
import torch
from torch import nn

torch.set_num_threads(1)
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study()


def objective(trial):
    model = nn.Linear(1024, 2048)
    trial.set_user_attr("model", model)
    return trial.suggest_float("x", 0, 1)

# %% x12
study.optimize(objective, n_trials=1)
