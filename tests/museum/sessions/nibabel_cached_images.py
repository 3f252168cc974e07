# truth: leak
# world: host
# entry: nibabel-cached-images
# about: a loop over images on disk, each of which keeps its data once it was read
# twin: {"before": "# cure", "after": "image.uncache()"}
# %%
import nibabel
import numpy as np

for i in range(13):
    data = np.random.randint(0, 1000, (128, 128, 64)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), f"{i}.nii.gz")
images = [nibabel.load(f"{i}.nii.gz") for i in range(13)]
numbers = iter(range(13))

# %% x12
image = images[next(numbers)]
mean = float(image.get_fdata().mean())
# cure
