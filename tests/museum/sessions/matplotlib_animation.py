# truth: leak
# world: host
# entry: matplotlib-animation-frames
# about: animations are kept, as matplotlib asks, and each keeps the data of its frames
# twin: {"before": "save_count=8", "after": "save_count=8, cache_frame_data=False"}
# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

fig, ax = plt.subplots()
line = ax.plot([0], [0])[0]
animations = []


def frames():
    for _ in range(8):
        yield np.random.rand(1 << 18)


def draw(frame):
    line.set_data([0], [frame[0]])
    return [line]


# %% x8
animation = FuncAnimation(fig, draw, frames, save_count=8)
animation.save("frames.gif", writer="pillow", fps=4)
animations.append(animation)
