# truth: leak
# world: host
# entry: statsmodels-results-keep-data
# about: the results of many fits are collected, and each keeps its data
# twin: {"before": "# cure", "after": "result.remove_data()"}
# %%
import numpy as np
import statsmodels.api as sm

results = []

# %% x12
x = np.random.rand(1 << 16, 8)
result = sm.OLS(x[:, 0], x).fit()
score = result.rsquared
# cure
results.append(result)
