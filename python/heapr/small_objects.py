"""Python's own allocator for small objects takes them out of arenas of 1 MiB. While code is
recorded each object is had from malloc instead, so that it counts with its own size and stack.

This needs no restart: what CPython's allocator did not give out, its ``free`` and ``realloc`` hand on to
the C library's. So only the functions that allocate are changed, and changed back.
"""

import contextlib
import ctypes
import sys
import sysconfig

_RAW, _MEM, _OBJECT = range(3)


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def _of(domain):
    allocator = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
    return allocator


def can_be_told_apart():
    """Whether this interpreter has that allocator, and nothing in front of it."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    raw, mem, objects = _of(_RAW), _of(_MEM), _of(_OBJECT)
    is_plain = raw.context == mem.context == objects.context
    # (`PYTHONMALLOC=malloc` has all three the same, and nothing is to be done.)
    return bool(is_plain and mem.malloc == objects.malloc and raw.malloc != objects.malloc)


@contextlib.contextmanager
def from_malloc():
    """Inside, every object is a block of malloc's."""
    if not can_be_told_apart():
        yield
        return
    raw, before = _of(_RAW), {domain: _of(domain) for domain in (_MEM, _OBJECT)}
    for domain, allocator in before.items():
        changed = _Allocator(
            allocator.context, raw.malloc, raw.calloc, allocator.realloc, allocator.free
        )
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(changed))
    try:
        yield
    finally:
        for domain, allocator in before.items():
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))
