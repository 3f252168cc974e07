# truth: healthy
# world: sim
# about: an image pipeline as with CuPy: each frame is uploaded, filtered and reduced; only numbers stay
# %%
from gpumem import sim as xp

xp.use(4 << 30)
kernel = xp.tensor(1 << 20)
means = []


def denoise(frame):
    smooth = frame * 0.5
    return smooth + frame

# %% x16
frame = xp.tensor(24 << 20)
clean = denoise(frame)
means.append(clean.sum().item())
