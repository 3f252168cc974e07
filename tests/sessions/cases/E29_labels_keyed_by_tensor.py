# truth: leak
# world: sim
# about: a class numbers each activation that it is shown, in a dict whose keys are the tensors themselves
# holder: Census
# bytes: 25165824
# %%
class Census:
    numbers = {}

    def visit(self, tensors):
        for tensor in tensors:
            self.numbers.setdefault(tensor, len(self.numbers))
        return len(self.numbers)


census = Census()
# %% x12
hidden = sim.tensor(16 * MB)
output = sim.tensor(8 * MB)
n_visited = census.visit([hidden, output])
