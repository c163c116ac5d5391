"""heapr from Python: record what a block of code allocates, as memory is, native stacks included.

    import heapr
    with heapr.Tracker() as tracker:
        work()
    print(tracker.peak_bytes, tracker.leaked_bytes)

The command line is in the same package: ``heapr.program()`` tells where.
"""

from .amounts import parse_size, shown_size
from .program import HeaprError, program
from .tracker import Allocation, Frame, Tracker

__all__ = ["Allocation", "Frame", "HeaprError", "Tracker", "parse_size", "program", "shown_size"]


def load_ipython_extension(shell):
    """``%load_ext heapr``: adds the cell magic ``%%heapr``."""
    from .jupyter import HeaprMagics

    shell.register_magics(HeaprMagics)
