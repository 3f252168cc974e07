# truth: healthy
# world: sim
# about: diffusion sampling in marked steps: all latents of one image make an animation, then they are dropped
# %%
import gpumem

unet = sim.tensor(900 << 20)

# %% x3
frames = []
latents = sim.tensor(6 << 20)
for t in gpumem.steps(range(30)):
    latents = latents + 0.1
    frames.append(latents)
brightness = [frame.sum().item() for frame in frames]
del frames, latents
