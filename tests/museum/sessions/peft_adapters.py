# truth: leak
# world: torch
# entry: peft-adapters
# about: an adapter is added for each task, and none is deleted
# twin: {"before": "# cure", "after": "model.delete_adapter(name)"}
# %%
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2048, 2048)

    def forward(self, x):
        return self.layer(x)


config = LoraConfig(r=512, target_modules=["layer"])
model = get_peft_model(Net(), config)
tasks = iter(range(100))

# %% x12
name = f"task_{next(tasks)}"
model.add_adapter(name, config)
model.set_adapter(name)
score = model(torch.randn(4, 2048)).mean().item()
model.set_adapter("default")
# cure
