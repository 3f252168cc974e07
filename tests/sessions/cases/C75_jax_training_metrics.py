# truth: healthy
# world: host
# about: JAX: the state is bound anew by each jitted step, the loss of each is kept as an array of four bytes
# %%
import jax
import jax.numpy as jnp

key = jax.random.key(0)
params = {"w1": jax.random.normal(key, (1024, 2048)), "w2": jax.random.normal(key, (2048, 64))}


@jax.jit
def train_step(params, x):
    def loss_fn(p):
        return jnp.mean((jnp.tanh(x @ p["w1"]) @ p["w2"]) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), loss


metrics = []

# %% x14
for _ in range(3):
    key, batch_key = jax.random.split(key)
    params, loss = train_step(params, jax.random.normal(batch_key, (128, 1024)))
    metrics.append(loss)
