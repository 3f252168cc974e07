# truth: leak
# world: host
# entry: gymnasium-render-frames
# about: the frames of an endless episode wait to be taken
# %%
import gymnasium as gym
import numpy as np
from gymnasium.wrappers import RenderCollection


class World(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    action_space = observation_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.render_mode = "rgb_array"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

    def render(self):
        return np.random.randint(0, 255, (512, 512, 3), np.uint8)


env = RenderCollection(World())
env.reset()

# %% x12
# cure
for _ in range(16):
    env.step(0)
