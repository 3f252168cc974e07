# truth: leak
# world: host
# entry: astropy-read-images
# about: a loop over the images of a file, each of which keeps its data once it was read
# twin: {"before": "# cure", "after": "del image.data"}
# %%
import numpy as np
from astropy.io import fits

images = [fits.ImageHDU(np.random.rand(1024, 1024)) for _ in range(13)]
fits.HDUList([fits.PrimaryHDU(), *images]).writeto("images.fits")
del images
file = fits.open("images.fits", memmap=False)
numbers = iter(range(1, 14))

# %% x12
image = file[next(numbers)]
mean = float(image.data.mean())
# cure
