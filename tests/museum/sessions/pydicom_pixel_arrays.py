# truth: leak
# world: host
# entry: pydicom-pixel-arrays
# about: a loop over segmentations, each of which keeps its array once it was read
# twin: {"before": "scan.pixel_array", "after": "pixel_array(scan)"}
# %%
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.pixels import pixel_array
from pydicom.uid import ExplicitVRLittleEndian


def scan_of(n):
    scan = Dataset()
    scan.file_meta = FileMetaDataset()
    scan.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    scan.Rows = scan.Columns = 4096
    scan.BitsAllocated = scan.BitsStored = 1
    scan.HighBit, scan.PixelRepresentation, scan.SamplesPerPixel = 0, 0, 1
    scan.PhotometricInterpretation = "MONOCHROME2"
    scan.PixelData = bytes([n]) * (4096 * 4096 // 8)
    return scan


scans = [scan_of(n) for n in range(13)]
numbers = iter(range(13))

# %% x12
scan = scans[next(numbers)]
mean = float(scan.pixel_array.mean())
