# truth: leak
# world: torch
# entry: transformers-outputs-keep-hidden-states
# about: outputs are collected for their last layer, and each has the states of all layers
# twin: {"before": "output_hidden_states=True))", "after": "output_hidden_states=True).hidden_states[-1].mean().item())"}
# %%
import torch
from transformers import BertConfig, BertForSequenceClassification

torch.set_num_threads(1)
config = BertConfig(
    hidden_size=64, num_hidden_layers=12, num_attention_heads=4, intermediate_size=64, vocab_size=32
)
model = BertForSequenceClassification(config).eval()
outputs = []

# %% x8
ids = torch.randint(0, 32, (8, 512))
with torch.no_grad():
    outputs.append(model(ids, output_hidden_states=True))
