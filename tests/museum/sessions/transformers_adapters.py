# truth: leak
# world: torch
# entry: transformers-adapters
# about: an adapter is added for each task, and none is deleted
# twin: {"before": "# cure", "after": "model.delete_adapter(name)"}
# %%
import torch
from peft import LoraConfig
from transformers import BertConfig, BertModel

torch.set_num_threads(1)
config = BertConfig(
    hidden_size=512, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=64
)
model = BertModel(config)
tasks = iter(range(100))

# %% x12
name = f"task_{next(tasks)}"
model.add_adapter(LoraConfig(r=1024, target_modules=["query"]), adapter_name=name)
with torch.no_grad():
    score = model(torch.zeros(1, 8, dtype=torch.long)).last_hidden_state.mean().item()
# cure
