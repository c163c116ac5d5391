"""Fills a heap with all kinds of objects, forks, and has the child write down all that it knows of
them. Parent and child have the same addresses."""
import collections
import functools
import gc
import os
import sys
import threading
import weakref


class Quote:
    def __init__(self, number):
        self.number = number
        self.label = "quote %d" % number
        self.parts = [number * 1.5, "net", b"x" * 200]


class Slotted:
    __slots__ = ("left", "right", "__weakref__")

    def __init__(self, left, right):
        self.left = left
        self.right = right


class Mapping(dict):
    def __init__(self, text):
        super().__init__(text=text)
        self.of = text + "!"


class Number(int):
    pass


class Failed(Exception):
    pass


def make_filter(least):
    seen = []

    def check(value):
        seen.append(value)
        return value > least

    return check


def generate(count):
    held = ["held by a generator", count]
    for number in range(count):
        yield number, held


async def wait(what):
    return [what]


@functools.lru_cache(maxsize=100)
def cached(number):
    return [number]


def fail(number):
    rows = ["row %d" % number] * 3
    raise Failed(rows[0])


def failures():
    for number in range(50):
        try:
            fail(number)
        except Failed as error:
            yield error


QUOTES = {number: Quote(number) for number in range(5000)}
SLOTTED = [Slotted(number, str(number)) for number in range(1000)]
MAPPINGS = [Mapping("text %d" % number) for number in range(300)]
NUMBERS = tuple(Number(10 ** number) for number in range(60))
FILTERS = [make_filter(number) for number in range(100)]
GENERATORS = [generate(number) for number in range(3, 40)]
for generator in GENERATORS:
    next(generator)
COROUTINES = [wait(number) for number in range(20)]
DEQUE = collections.deque([number] for number in range(1000))
ORDERED = collections.OrderedDict(("k%d" % number, [number]) for number in range(100))
DEFAULT = collections.defaultdict(list, {"resize": [Quote(1)], "press": []})
SETS = [frozenset([(number,), "s%d" % number]) for number in range(50)] + [set(range(1000))]
ERRORS = list(failures())
WEAK = [weakref.ref(quote) for quote in QUOTES.values()]
BOUND = [quote.__init__ for quote in list(QUOTES.values())[:50]]
PARTIAL = functools.partial(print, Quote(2))
BYTES = [bytearray(3000), bytearray(10)]
MADE_REAL = [quote.__dict__ for quote in list(QUOTES.values())[:20]]
TEXTS = ["ä" * 10, "漢字" * 20, "\U0001f600" * 3, "plain " * 400]
for number in range(200):
    cached(number)
LOCAL = threading.local()
LOCAL.history = [Quote(3)]
CIRCLES = [[] for number in range(10)]
for circle in CIRCLES:
    circle.append(circle)
gc.collect()
gc.freeze()
LATE = [Quote(number) for number in range(100)]
GARBAGE_COUNT = 500
SECRETS = {"alice@example.com": [1]}


class Open:
    pass


OPEN = Open()
setattr(OPEN, "alice@work.example", [2])
DATA = Open()
DATA.__dict__["alice@home.example"] = [3]


def leave_circles():
    for number in range(GARBAGE_COUNT):
        circle = Slotted(None, None)
        circle.left = circle


gc.disable()
leave_circles()


def write(path):
    known = {}
    edges = []
    pending = gc.get_objects()
    own = {id(known), id(edges), id(pending)}
    every = [pending]
    while pending:
        following = []
        own.add(id(following))
        every.append(following)
        for thing in pending:
            if id(thing) in own or id(thing) in known:
                continue
            known[id(thing)] = thing
            for other in gc.get_referents(thing):
                edges.append((id(thing), id(other)))
                if id(other) not in known:
                    following.append(other)
        pending = following
    with open(path, "w") as out:
        for address, thing in list(known.items()):
            of = type(thing)
            try:
                size = sys.getsizeof(thing)
            except Exception:
                size = -1
            out.write("O %d %d %s.%s\n" % (address, size, of.__module__, of.__qualname__))
        for source, target in edges:
            out.write("E %d %d\n" % (source, target))


def main():
    path = sys.argv[1]
    read, told = os.pipe()
    child = os.fork()
    if child == 0:
        write(path)
        os.write(told, b"x")
        os._exit(0)
    os.read(read, 1)
    os.write(1, b"READY\n")
    os.read(0, 1)


main()
