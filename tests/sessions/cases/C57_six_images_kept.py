# truth: undecided
# world: sim
# about: six generated images are kept to compare them
# %%
images = []

def generate(seed):
    latent = sim.tensor(64 << 20)
    return (latent.sum().item(), sim.tensor(3 << 20))

# %% x6
images.append(generate(seed=len(images)))
