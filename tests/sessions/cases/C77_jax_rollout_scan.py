# truth: healthy
# world: host
# about: JAX: a trajectory of 64 states comes out of lax.scan, its mean is kept, the trajectory is replaced
# %%
import jax
import jax.numpy as jnp


@jax.jit
def rollout(state):
    def body(s, _):
        s = jnp.sin(s) + 0.01
        return s, s

    return jax.lax.scan(body, state, None, length=64)


state = jnp.ones((65536,))
means = []

# %% x14
state, trajectory = rollout(state)
means.append(float(trajectory.mean()))
