# truth: leak
# world: sim
# about: two agents by name, each remembers all that it saw and is much larger than that at first
# holder: agents
# bytes: 50331648
# %%
class Agent:
    def __init__(self):
        self.weights = sim.tensor(120 * MB)
        self.memory = []
    def act(self):
        self.memory.append(sim.tensor(24 * MB))
agents = {"left": Agent(), "right": Agent()}
# %% x12
for name in agents:
    agents[name].act()
