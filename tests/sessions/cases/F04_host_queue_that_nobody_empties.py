# truth: leak
# world: host
# about: a heat simulation puts copies of its field into a queue that no one empties
# holder: plot_queue.*
# bytes: 0

# %%
import queue

import numpy as np

# %%
plot_queue = queue.Queue()

n = 512
u = np.zeros((n, n))
u[n // 3: n // 2, n // 3: n // 2] = 100.0
alpha, dt = 0.2, 1.0
energy = []

for t in range(280):
    lap = (
        np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
    )
    u = u + alpha * dt * lap
    energy.append(float((u ** 2).sum()))
    plot_queue.put({"t": t, "field": u.copy(), "max": u.max()})

print(f"E0={energy[0]:.3e} E={energy[-1]:.3e}")
