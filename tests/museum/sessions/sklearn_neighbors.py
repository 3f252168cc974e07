# truth: leak
# world: host
# entry: sklearn-neighbors-keep-data
# about: the models of a search are kept, and each has its training data
# twin: {"before": "models.append(model)", "after": "models.append(score)"}
# %%
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

models = []

# %% x12
x = np.random.rand(1 << 15, 32)
model = KNeighborsClassifier(algorithm="brute").fit(x, x[:, 0] > 0.5)
score = model.score(x[:64], x[:64, 0] > 0.5)
models.append(model)
del x
