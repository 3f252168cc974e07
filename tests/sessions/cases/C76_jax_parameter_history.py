# truth: leak
# world: host
# about: JAX: every step's parameters go into a list: they are new arrays each time
# holder: history
# bytes: 16777216
# %%
import jax
import jax.numpy as jnp

params = {"w": jnp.ones((2048, 2048))}


@jax.jit
def step(params, x):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads)


x = jnp.ones((64, 2048))
history = []

# %% x12
params = step(params, x)
history.append(params)
jax.block_until_ready(params);
