# truth: leak
# world: sim
# about: diffusion sampling: a callback keeps the latents of every fifth step for a preview, for every prompt
# holder: previews
# bytes: 33554432
# %%
MiB = 1 << 20
unet = sim.tensor(900 * MiB)

# %%
previews = []


def on_step(i, latents):
    if i % 5 == 0:
        previews.append(latents)


def sample(prompt, steps=20):
    latents = sim.tensor(8 * MiB)
    for i in range(steps):
        noise = (latents * 0.18 + 1.0).detach()
        latents = latents + noise
        on_step(i, latents)
    return latents.sum().item()

# %% x10
prompt = "a lighthouse at dusk, oil on canvas"
score = sample(prompt)
