# truth: healthy
# world: torch
# about: Embeds a whole corpus batch by batch into a list, joins and normalises it into an index, and then answers queries many times.

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
encoder = nn.Sequential(nn.EmbeddingBag(20000, 256, mode="mean"), nn.Linear(256, 768), nn.Tanh())
encoder.eval()
corpus = torch.randint(0, 20000, (42_000, 24))

@torch.inference_mode()
def embed(token_ids):
    return encoder(token_ids)

# %%
embeddings = []
for chunk in corpus.split(600):
    embeddings.append(embed(chunk))
embeddings = F.normalize(torch.cat(embeddings), dim=-1)
embeddings.shape

# %% x10
query = torch.randint(0, 20000, (64, 8))
q = F.normalize(embed(query), dim=-1)
scores = q @ embeddings.T
top = scores.topk(5, dim=-1)
top.indices[0]
