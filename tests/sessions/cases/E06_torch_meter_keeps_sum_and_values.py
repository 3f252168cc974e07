# truth: leak
# world: torch
# about: one cell defines a meter and loops; the meter adds losses up and lists them, and each keeps its graph
# holder: meter
# bytes: 16777216
# %%
# %%


class Average:
    def __init__(self):
        self.total = 0
        self.values = []

    def add(self, value):
        self.total = self.total + value
        self.values.append(value)


weights = torch.randn(1024, 1024, requires_grad=True)
meter = Average()
for batch in range(30):
    x = torch.randn(2048, 1024)
    meter.add((x @ weights).sigmoid().mean())
