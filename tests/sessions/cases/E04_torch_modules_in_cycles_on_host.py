# truth: leak
# world: torch
# about: each run builds a module that keeps a bound method of itself; the old one waits for the garbage collector, on the CPU
# holder: cyclic garbage
# bytes: 25165824
# %%
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3072, 2048, bias=False)
        self.act = self.forward

    def forward(self, x):
        return self.body(x)

# %% x14
policy = Policy()
