# truth: leak
# world: sim
# about: one cell, one loop of epochs with an inner loop of batches; a snapshot of the weights (four tensors) after each epoch; only the last one is looked at
# holder: snapshots
# bytes: 33554432
# %%
import time
state = {f"layer{i}.weight": sim.tensor(8 * MB, requires_grad=True) for i in range(4)}
snapshots = []
# %%
for epoch in range(24):
    for b in range(5):
        time.sleep(0.003)
        for p in state.values():
            (sim.tensor(4 * MB) * p).sum().backward()
            p.grad = None
    snapshots.append({k: v.detach() * 1 for k, v in state.items()})
print(sorted(snapshots[-1]))
