# truth: healthy
# world: torch
# about: text is generated token by token in marked steps; keys and values grow by cat and go with the text
# %%
import gpumem

to_kv = nn.Linear(1024, 2048)

# %% x2
with torch.no_grad():
    past = torch.empty(64, 0, 2048)
    for token in gpumem.steps(range(32)):
        new = to_kv(torch.randn(64, 1, 1024))
        past = torch.cat([past, new], dim=1)
    text = past.mean().item()
del past, new
