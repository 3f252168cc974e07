# truth: leak
# world: host
# entry: xarray-cached-variables
# about: a loop over the variables of a file, each of which stays in memory once it was read
# twin: {"before": "open_dataset(\"data.nc\")", "after": "open_dataset(\"data.nc\", cache=False)"}
# %%
import numpy as np
import xarray as xr

made = xr.Dataset({f"v{i}": ("x", np.random.rand(1 << 20)) for i in range(14)})
made.to_netcdf("data.nc", engine="h5netcdf")
del made

# %%
data = xr.open_dataset("data.nc")
names = iter(list(data.data_vars))

# %% x12
mean = float(data[next(names)].values.mean())
