"""Allocates blocks whose sizes stand for the allocating function and line, in every way in which
Python calls. At its end it writes the meaning of each size: a line of JSON a size, with file, line,
function and number of blocks. heapr must report the same for each block.

A block of `take()` is one byte larger than asked for: a bytearray ends with a zero.
"""

import asyncio
import functools
import gc
import json
import os
import sys
import threading

FIRST = 100_000
numbers = {}
counts = {}
lock = threading.Lock()


def take():
    """Returns a number for the caller's location; the caller allocates as many bytes."""
    caller = sys._getframe(1)
    code = caller.f_code
    name = getattr(code, "co_qualname", code.co_name)
    place = (code.co_filename, caller.f_lineno, name)
    with lock:
        number = numbers.setdefault(place, len(numbers))
        counts[number] = counts.get(number, 0) + 1
    return FIRST + 8 * number


def plain():
    a = bytearray(take())
    for _ in range(3):
        a = bytearray(take())

    b = bytearray(take())
    return a, b


class Shelf:
    kept = bytearray(take())

    def __init__(self, depth):
        self.first = bytearray(take())
        if depth:
            self.inner = Shelf(depth - 1)

    def method(self):
        return bytearray(take())

    @property
    def whole(self):
        return bytearray(take())

    @staticmethod
    def still():
        def inner():
            return bytearray(take())
        return inner()

    def __lt__(self, other):
        bytearray(take())
        return id(self) < id(other)

    def __del__(self):
        bytearray(take())


def generator(count):
    for _ in range(count):
        a = bytearray(take())
        yield a
        a = bytearray(take())
        yield a


def delegating(count):
    yield from generator(count)
    yield bytearray(take())


async def leaf(number):
    a = bytearray(take())
    await asyncio.sleep(0)
    b = bytearray(take())
    return a, b


async def branch():
    await asyncio.gather(*(leaf(number) for number in range(5)))
    bytearray(take())
    async for block in stream():
        bytearray(take())


async def stream():
    for _ in range(3):
        await asyncio.sleep(0)
        yield bytearray(take())


def recursive(depth):
    a = bytearray(take())
    if depth:
        recursive(depth - 1)
    b = bytearray(take())
    return a, b


def through_c(depth):
    """Recurses so that each level goes through the interpreter's C code."""
    bytearray(take())
    if depth:
        list(map(lambda number: (bytearray(take()), through_c(number)), [depth - 1]))
        functools.reduce(lambda a, b: bytearray(take()), [1, 2, 3])


def failing():
    try:
        bytearray(take())
        raise ValueError(bytearray(take()))
    except ValueError:
        bytearray(take())
    finally:
        bytearray(take())


def comprehensions():
    a = [bytearray(take()) for _ in range(3)]
    b = {number: bytearray(take()) for number in range(3)}
    c = list(bytearray(take()) for _ in range(3))
    return a, b, c


def made_anew(rounds):
    """Makes and frees code at the same addresses, with other names and lines."""
    for number in range(rounds):
        name = "f%d" % (number % 7)
        source = "\n" * (number % 5) + "def %s():\n" % name + "    pass\n" * (number % 3)
        source += "    return bytearray(take())\n%s()\n" % name
        exec(compile(source, "<made %d>" % (number % 4), "exec"), {"take": take})
    for number in range(rounds):
        # One name and one length, and another line each time.
        lines = ["    1", "    2", "    3", "    4"]
        lines[number % 4] = "    bytearray(take())"
        exec(compile("def same():\n" + "\n".join(lines) + "\nsame()\n", "<same>", "exec"), {"take": take})


def many_lines():
    for _ in range(200):
        bytearray(take())
        a = bytearray(take()); b = bytearray(take())
        c = [
            bytearray(take()),
            bytearray(take()),
        ]


def work():
    plain()
    shelf = Shelf(5)
    shelf.method()
    shelf.whole
    Shelf.still()
    sorted([Shelf(0), Shelf(0), Shelf(0)])
    del shelf
    list(generator(4))
    list(delegating(3))
    asyncio.run(branch())
    recursive(300)
    through_c(20)
    failing()
    comprehensions()
    made_anew(60)
    many_lines()
    gc.collect()


def in_threads():
    threads = [threading.Thread(target=work_lightly) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work_lightly():
    for _ in range(20):
        plain()
        list(delegating(2))
        recursive(40)
        through_c(5)


def main():
    # Attached to while it waits.
    if os.environ.get("VICTIM_WAITS"):
        print("waiting", flush=True)
        sys.stdin.readline()
        numbers.clear()
        counts.clear()
    work()
    in_threads()
    child = os.fork()
    if child == 0:
        counts.clear()
        work_lightly()
        write(".child")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    write("")
    sys.exit(status)


def write(suffix):
    with open(sys.argv[1] + suffix, "w") as out:
        for (file, line, name), number in numbers.items():
            if number in counts:
                told = {"bytes": FIRST + 8 * number + 1, "file": file, "line": line}
                out.write(json.dumps(dict(told, function=name, blocks=counts[number])) + "\n")


if __name__ == "__main__":
    main()
