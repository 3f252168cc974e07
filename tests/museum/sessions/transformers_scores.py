# truth: leak
# world: torch
# entry: transformers-generate-keeps-scores
# about: generated texts are collected, and each has the scores of the whole vocabulary
# twin: {"before": "generations.append(out)", "after": "generations.append(out.sequences)"}
# %%
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.set_num_threads(1)
config = GPT2Config(n_embd=16, n_layer=1, n_head=1, vocab_size=50000, n_positions=64, pad_token_id=0, eos_token_id=None, bos_token_id=0)
model = GPT2LMHeadModel(config).eval()
generations = []

# %% x8
ids = torch.zeros(4, 1, dtype=torch.long)
out = model.generate(ids, max_new_tokens=24, use_cache=False, output_scores=True, return_dict_in_generate=True)
generations.append(out)
