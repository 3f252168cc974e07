# truth: leak
# world: host
# about: a library of C allocates in each call and never frees
# holder: .*
# bytes: 25165824
# %%
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
def decode():
    p = libc.malloc(24 << 20)
    ctypes.memset(p, 1, 24 << 20)
    return 0
# %% x10
decode();
