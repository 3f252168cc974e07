# truth: undecided
# world: sim
# about: PEFT: an adapter of 6 MiB is trained for each task and kept in a dict; 6 of a handful of tasks so far
# %%
base = sim.tensor(1200 << 20)
adapters = {}
tasks = iter(["sst2", "mnli", "qqp", "cola", "rte", "stsb", "wnli", "boolq"])

def train_adapter(task):
    lora = [sim.tensor(1 << 20, requires_grad=True) for _ in range(6)]
    for a in lora:
        (sim.tensor(8 << 20) * a).sum().backward()
        a.grad = None
    return lora

# %% x6
task = next(tasks)
adapters[task] = train_adapter(task)
