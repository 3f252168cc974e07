# truth: undecided
# world: sim
# about: a replay memory as a class with a capacity
# %%
class Memory:
    def __init__(self, capacity):
        self.capacity, self.items = capacity, []
    def push(self, item):
        self.items.append(item)
        if len(self.items) > self.capacity:
            self.items.pop(0)
memory = Memory(40)
# %% x14
memory.push(sim.tensor(24 * MB))
