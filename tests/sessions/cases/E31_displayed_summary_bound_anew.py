# truth: leak
# world: sim
# about: each run makes a summary in the same name and displays it; its short text hides a confusion map of 20 MiB
# holder: summary|Out|_.*|.*displayed.*
# bytes: 20971520
# %%
class Summary:
    def __init__(self, accuracy):
        self.accuracy = accuracy
        self.confusion = sim.tensor(20 * MB)

    def __repr__(self):
        return f"Summary(accuracy={self.accuracy})"

    def rounded(self):
        self.accuracy = round(self.accuracy, 1)
        return self


# %% x12
summary = Summary(0.91)
summary.rounded()
# %%
summary = None
