# truth: healthy
# world: torch
# about: distillation: the teacher's logits of eight fixed batches are computed once and used again; 20 runs
# %%
teacher, student = nn.Linear(128, 4096), nn.Linear(128, 4096)
optimizer = torch.optim.SGD(student.parameters(), lr=1e-2)
batches = torch.randn(8, 512, 128)
logits = {}
step = 0

# %% x20
i = step % len(batches)
if i not in logits:
    with torch.no_grad():
        logits[i] = teacher(batches[i])
loss = (student(batches[i]) - logits[i]).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
step += 1
