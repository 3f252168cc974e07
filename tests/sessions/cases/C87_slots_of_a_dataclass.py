# truth: leak
# world: sim
# about: the state of a training is a dataclass with slots; its list of losses keeps their graphs
# holder: state
# bytes: 12582912
# %%
from dataclasses import dataclass, field

@dataclass(slots=True)
class TrainState:
    weight: object
    losses: list = field(default_factory=list)

    def step(self, batch):
        loss = (batch * self.weight).sum()
        self.losses.append(loss)
        return self

state = TrainState(sim.tensor(4 << 20, requires_grad=True))

# %% x12
state = state.step(sim.tensor(12 << 20))
