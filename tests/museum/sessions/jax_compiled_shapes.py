# truth: leak
# world: host
# entry: jax-compiled-shapes
# about: each text has another length, and JAX compiles for each
# %%
import jax
import jax.numpy as jnp

n = 0


@jax.jit
def step(x):
    for _ in range(30):
        x = jnp.sin(x) @ x.T @ x / 3
    return x.sum()


# %% x6
# cure
for _ in range(6):
    n += 1
    step(jnp.ones((4, n))).block_until_ready()
