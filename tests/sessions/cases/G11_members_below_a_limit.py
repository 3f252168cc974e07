# truth: healthy
# world: sim
# about: an ensemble gets a member in each run until it has ten
# %%
class Member:
    def __init__(self, i):
        self.i = i
        self.w = sim.tensor(45 * MB)
members = []
# %% x20
if len(members) < 10:
    members.append(Member(len(members)))
score = sum(m.i for m in members)
