# truth: leak
# world: torch
# about: only the first token's vector is kept, but it is a view: the whole hidden state stays
# holder: cls_tokens
# bytes: 16777216
# %%
encoder = nn.Linear(512, 512)
cls_tokens = []

# %% x12
with torch.no_grad():
    hidden = encoder(torch.randn(512, 16, 512))
    cls_tokens.append(hidden[:, 0])
