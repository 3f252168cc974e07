# truth: healthy
# world: sim
# about: two cameras, each with its background and a window over its last frames
# %%
from collections import deque
class Camera:
    def __init__(self):
        self.frames = deque(maxlen=12)
        self.background = sim.tensor(200 * MB)
class Rig:
    def __init__(self):
        self.cameras = [Camera(), Camera()]
    def grab(self):
        for camera in self.cameras:
            camera.frames.append(sim.tensor(10 * MB))
rig = Rig()
# %% x20
rig.grab()
