"""What a process must do to be recorded by a program that it starts itself."""

import contextlib
import ctypes

from .program import HeaprError

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)


@contextlib.contextmanager
def may_be_traced():
    """Inside, processes of the same user may attach to this one, where Linux asks for leave.

    With Yama's scope 1 a process is traced by its ancestors only, and heapr is a child of it.
    """
    try:
        with open(_YAMA, encoding="ascii") as file:
            scope = int(file.read())
    except (OSError, ValueError):
        scope = 0
    if scope >= 2:
        raise HeaprError(
            f"this process cannot be recorded from within: {_YAMA} is {scope}. Have root set it to 1, or run the "
            "whole program under heapr: heapr run -- python …"
        )
    if scope == 0:
        yield
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_PTRACER, 0, 0, 0, 0)
