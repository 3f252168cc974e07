# truth: healthy
# world: sim
# about: each run moves a batch from job.pending to job.done; now and then a result is larger for a while
# %%
from gpumem import sim

sim.use(4 << 30)


class Job:
    def __init__(self):
        self.pending = [sim.tensor(32 << 20) for _ in range(24)]
        self.done = []
        self.draft = None


job = Job()
n = 0

# %% x20
n += 1
job.done.append(job.pending.pop())
job.draft = sim.tensor((n % 5 + 1) << 20)
