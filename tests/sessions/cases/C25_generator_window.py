# truth: healthy
# world: sim
# about: a generator of clips keeps the last four frames of a video in a deque; a clip a run
# %%
from collections import deque

def clips(n=4):
    window = deque(maxlen=n)
    while True:
        window.append(sim.tensor(16 << 20))
        yield list(window)

video = clips()
motion = []

# %% x16
clip = next(video)
motion.append(sum(frame.sum().item() for frame in clip))
