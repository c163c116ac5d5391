"""A recording of this process while a block of code runs.

The session attaches, so every thread's calls are seen. Begin and end are marked by a block of an
odd size each, allocated by the recorded thread itself: the order of times in a trace is the order of calls,
so nothing before or after them is counted.
"""

import contextlib
import ctypes
import os
import random
import shutil
import tempfile
import threading
from typing import List, NamedTuple, Optional

from . import shared_recording
from .own_process import may_be_traced
from .program import HeaprError, ask, ask_json
from .small_objects import from_malloc

# Stacks that are asked for where nobody says how many.
_TOP = 10
# Sort key, and the columns of bytes and blocks.
_SORTS = {
    "peak": ("peak", "peak_bytes", "peak_count"),
    "leaked": ("so", "outstanding_bytes", "outstanding_count"),
}
_numbers = iter(range(1, 1 << 62))


def _choosing(options):
    """The options without those that choose frames alone: the totals are the same."""
    words = list(options)
    if "--lang-frames" in words:
        at = words.index("--lang-frames")
        del words[at : at + 2]
    return tuple(words)


class Frame(NamedTuple):
    """One call of a stack."""

    function: str
    module: str
    file: str
    line: int

    # As pytest-memray's filters of leaks know them.
    filename = property(lambda self: self.file or self.module)
    lineno = property(lambda self: self.line)

    def __str__(self):
        place = f"{self.file}:{self.line}" if self.file else os.path.basename(self.module)
        return f"{self.function or '???'} ({place})"


class Allocation(NamedTuple):
    """What one stack has allocated; frames innermost first."""

    size_bytes: int
    block_count: int
    frames: List[Frame]


class Tracker:
    """Records this process from ``__enter__`` to ``__exit__``.

    :param file_name: where the trace is kept; without it a temporary file that goes with the tracker.
    :param is_one_of_many: the process stays attached to afterwards, so that the next such block costs little. Without
        a ``file_name``; the answers are asked for before the next block.
    :param small_objects: False leaves Python's small objects in its arenas of 1 MiB, as they are without heapr:
        they count one by one only where heapr knows this Python's own allocator.
    """

    _active = threading.Lock()

    def __init__(self, file_name: Optional[str] = None, *, small_objects: bool = True, is_one_of_many: bool = False):
        self._folder = None
        self._shared = None
        self._is_shared = is_one_of_many and file_name is None
        if self._is_shared:
            file_name = os.devnull
        if file_name is None:
            self._folder = tempfile.mkdtemp(prefix="heapr-")
            file_name = os.path.join(self._folder, "tracker.heapr")
        self.file_name = os.path.abspath(file_name)
        self._small_objects = small_objects
        self._open = None
        self._answers = {}
        self._totals = {}
        self.thread_id = None

    def __enter__(self):
        if not Tracker._active.acquire(blocking=False):
            raise HeaprError("this process is being recorded by another heapr.Tracker: they cannot be nested")
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(Tracker._active.release)
                self._malloc = ctypes.CDLL(None)
                self._malloc.malloc.restype = ctypes.c_void_p
                self._malloc.malloc.argtypes = [ctypes.c_size_t]
                self._malloc.free.argtypes = [ctypes.c_void_p]
                self._marks = random.sample(range(1 << 20, 1 << 22), 2)
                self.thread_id = threading.get_native_id()
                stack.enter_context(may_be_traced())
                self._begin(stack)
                if self._small_objects:
                    stack.enter_context(from_malloc())
                self._open = stack.pop_all()
        except HeaprError:
            self.close()
            raise
        self._mark(0)
        return self

    def __exit__(self, *_):
        self._mark(1)
        self._open.close()
        self._open = None

    def _mark(self, which):
        self._malloc.free(self._malloc.malloc(self._marks[which]))

    def _begin(self, stack):
        if self._is_shared:
            self._shared = shared_recording.of_this_process()
            self.file_name = self._shared.file_name
            self._shared.on()
            stack.callback(self._shared.off)
            return
        # A process can be in one session only.
        shared_recording.end()
        name = f"python-{os.getpid()}-{next(_numbers)}"
        ask("start", name, "--pid", str(os.getpid()), "--mmap", "--no-follow", "-o", self.file_name)
        stack.callback(ask, "stop", name, "--quiet")

    def _answer(self, what=None, top=_TOP, options=()):
        """Totals, and stacks if ``what`` says by which amount, of what was allocated inside; asked once."""
        key = (what, top, tuple(options))
        if key not in self._answers:
            words = ["--between-blocks", *map(str, self._marks), *options]
            words += ["--stacks", _SORTS[what][0]] if what else ["--totals"]
            if what and top is not None:
                words += ["--top", str(top)]
            answer = ask_json("report", self.file_name, *words)
            if answer["totals"]["lost_events"]:
                raise HeaprError(f"{self.file_name}: {answer['totals']['lost_events']} events were lost")
            self._answers[key] = answer
            self._totals[_choosing(options)] = answer["totals"]
        return self._answers[key]

    def totals(self, *options):
        """The amounts of what was allocated inside and is chosen by options of ``heapr report``."""
        known = self._totals.get(_choosing(options))
        return self._answer(options=options)["totals"] if known is None else known

    @property
    def peak_bytes(self):
        """The most that was live at once of what was allocated inside."""
        return self.totals()["peak_bytes"]

    @property
    def leaked_bytes(self):
        """What was allocated inside and not freed inside."""
        return self.totals()["outstanding_bytes"]

    @property
    def allocation_count(self):
        """Calls that allocated."""
        return self.totals()["alloc_count"]

    def allocations(self, what="peak", top=_TOP, options=()):
        """The stacks that held most: at the ``"peak"`` or, of what was never freed, ``"leaked"``.

        ``top=None`` gives all of them.
        """
        _, size, count = _SORTS[what]
        found = []
        for group in self._answer(what, top, options)["groups"]:
            frames = [
                Frame(
                    frame.get("symbol") or "",
                    frame.get("module") or "",
                    frame.get("file") or "",
                    frame.get("line") or 0,
                )
                for frame in group["frames"]
            ]
            if group[size]:
                found.append(Allocation(group[size], group.get(count, 0), frames))
        return found

    def close(self):
        """Removes the temporary file, if it is one."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __del__(self):
        self.close()
