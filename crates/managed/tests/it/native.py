# Native blocks that objects hold, and objects that native blocks hold. It prints the blocks' addresses and sizes.
import ctypes
import sys

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def block(size):
    address = libc.malloc(ctypes.c_size_t(size))
    ctypes.memset(address, 0, size)
    print(address, size)
    return address


def put(address, word):
    ctypes.c_uint64.from_address(address).value = word


class Counted:
    pass


class Stale:
    pass


OUTER, INNER, LONE = block(1024), block(2048), block(512)
# The view leads inside of the first block, and that inside of the second.
VIEW = (ctypes.c_char * 900).from_address(OUTER + 64)
put(OUTER + 8, INNER + 32)
# An object that the block holds alone, and one that it does not hold.
counted = Counted()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(counted))
put(OUTER + 16, id(counted))
del counted
STALE = Stale()
put(OUTER + 24, id(STALE))
print("READY", flush=True)
sys.stdin.read()
