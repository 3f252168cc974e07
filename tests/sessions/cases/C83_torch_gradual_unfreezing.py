# truth: healthy
# world: torch
# about: fine-tuning: every second run unfreezes one more of eight layers, whose gradient and Adam state appear; 20 runs
# %%
layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(8)).requires_grad_(False)
optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4)
epoch = 0

# %% x20
if epoch % 2 == 0 and epoch // 2 < len(layers):
    layers[-1 - epoch // 2].requires_grad_(True)
x = torch.randn(64, 1024)
for layer in layers:
    x = torch.tanh(layer(x))
loss = x.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
epoch += 1
