# truth: healthy
# world: host
# about: a memo dict over a small set of keys fills with 40 spectra of 2 MiB and is hit on nearly every later request.
# %%
import functools, time
import numpy as np

def memoize(fn):
    memo = {}
    @functools.wraps(fn)
    def wrapper(*key):
        if key not in memo:
            memo[key] = fn(*key)
        return memo[key]
    wrapper.memo = memo
    return wrapper
# %%
@memoize
def basis(freq, phase):
    t = np.linspace(0, 40, 262_144)
    time.sleep(0.02)
    return np.sin(freq * t + phase) * np.exp(-t / 30)
# %%
# the grid has 10 frequencies x 4 phases, no more
rng = np.random.default_rng(0)
energy = []
for q in range(300):
    f, p = int(rng.integers(1, 11)), int(rng.integers(0, 4))
    energy.append(basis(f, p)[:4096] @ basis(f, 0)[:4096])
    time.sleep(0.004)
print("memo size", len(basis.memo), "queries", len(energy))
# %% x4
target = rng.standard_normal(262_144)
coef = {(f, p): float(basis(f, p) @ target) for f in range(1, 11) for p in range(4)}
best = max(coef, key=lambda k: abs(coef[k]))
print("best atom", best, coef[best], "memo", len(basis.memo))
