# truth: leak
# world: torch
# entry: transformers-outputs-keep-cache
# about: outputs are collected for their logits, and each keeps its KV cache
# twin: {"before": "model(ids))", "after": "model(ids, use_cache=False).logits.mean().item())"}
# %%
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
config = LlamaConfig(
    hidden_size=64, num_hidden_layers=8, num_attention_heads=4, intermediate_size=64, vocab_size=32
)
model = LlamaForCausalLM(config).eval()
outputs = []

# %% x8
ids = torch.randint(0, 32, (1, 1024))
with torch.no_grad():
    outputs.append(model(ids))
