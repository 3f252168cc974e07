# truth: healthy
# world: sim
# about: every fifth run validates with a larger batch; its predictions take the place of the last ones; 25 runs
# %%
w = sim.tensor(16 << 20, requires_grad=True)
epoch, val_preds = 0, None

# %% x25
epoch += 1
loss = (sim.tensor(64 << 20) * w).sum()
loss.backward()
w.grad = None
if epoch % 5 == 0:
    with sim.no_grad():
        val_preds = [sim.tensor(40 << 20) * w for _ in range(3)]
