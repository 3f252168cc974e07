# truth: healthy
# world: host
# about: a file of 320 MiB is mapped and read in parts; its pages are the system's cache, not memory that is kept
# %%
import mmap
import zlib

PART = 16 << 20
with open("corpus.bin", "wb") as file:
    for i in range(20):
        file.write(bytes([i]) * PART)
file = open("corpus.bin", "rb")
corpus = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
position, checksum = 0, 0

# %% x16
with memoryview(corpus)[position : position + PART] as part:
    checksum = zlib.crc32(part, checksum)
position += PART
