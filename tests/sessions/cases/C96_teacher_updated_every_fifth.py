# truth: healthy
# world: sim
# about: self-training: every fifth run the student becomes the teacher, in a new copy; 20 runs
# %%
student = [sim.tensor(32 << 20, requires_grad=True) for _ in range(4)]
teacher = None
run = 0

# %% x20
run += 1
for p in student:
    (sim.tensor(8 << 20) * p).sum().backward()
    p.grad = None
if run % 5 == 0:
    teacher = None
    teacher = [p.detach() + 0 for p in student]
