"""Greenlets that switch to one another in the middle of their functions, within threads: each block's size says which function and
line asked for it, as in lines.py. With gevent installed, a pool of its greenlets, too.
"""

import threading

import greenlet
import lines
from lines import take


def leaf(depth, hub):
    bytearray(take())
    if depth:
        leaf(depth - 1, hub)
    else:
        hub.switch()
        bytearray(take())
    return bytearray(take())


def worker(number, hub):
    for step in range(5):
        bytearray(take())
        leaf(3 + (number + step) % 7, hub)
        hub.switch()
        bytearray(take())
    made = [bytearray(take()) for _ in range(2)]
    hub.switch()
    return made


def other(hub):
    while True:
        bytearray(take())
        hub.switch()
        lines.recursive(4)
        bytearray(take())


def inner_hub(depth):
    """A greenlet whose parent is no main one, down to some depth."""
    here = greenlet.getcurrent()
    bytearray(take())
    if depth:
        below = greenlet.greenlet(inner_hub, here)
        below.switch(depth - 1)
        bytearray(take())
    list(lines.delegating(2))


def failing(hub):
    try:
        bytearray(take())
        hub.switch()
    except greenlet.GreenletExit:
        bytearray(take())
        raise


def run():
    hub = greenlet.getcurrent()
    made = [greenlet.greenlet(worker) for _ in range(12)] + [greenlet.greenlet(other) for _ in range(3)]
    for number, one in enumerate(made):
        one.switch(number, hub) if number < 12 else one.switch(hub)
    for turn in range(40):
        one = made[turn * 7 % len(made)]
        if not one.dead:
            one.switch()
        bytearray(take())
    inner_hub(6)
    for _ in range(5):
        ended = greenlet.greenlet(failing)
        ended.switch(hub)
        ended.throw()
        bytearray(take())
    for one in made:
        if not one.dead:
            one.throw()


def in_gevent():
    try:
        import gevent
        from gevent.pool import Pool
    except ImportError:
        return

    def job(number):
        bytearray(take())
        gevent.sleep(0)
        lines.recursive(number % 9)
        gevent.sleep(0.0001 * (number % 3))
        return bytearray(take())

    Pool(20).map(job, range(100))


def main():
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        run()
    for thread in threads:
        thread.join()
    in_gevent()
    lines.write("")


main()
