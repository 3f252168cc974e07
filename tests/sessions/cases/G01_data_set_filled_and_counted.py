# truth: healthy
# world: sim
# about: cell A tokenises 40 shards into a list and prints its length, cell B trains three epochs over all of it
# %%
import time
head = sim.tensor(8 * MB, requires_grad=True)

def tokenise(shard):
    time.sleep(0.01)
    return {"input_ids": sim.tensor(10 * MB), "mask": sim.tensor(2 * MB)}
# %%
dataset = []
for shard in range(40):
    dataset.append(tokenise(shard))
print(len(dataset), "shards")
# %% x3
epoch_loss = 0.0
for item in dataset:
    loss = ((item["input_ids"] * head) * item["mask"]).sum()
    loss.backward()
    head.grad = None
    epoch_loss += loss.item()
print(epoch_loss / len(dataset))
