"""Allocates, collects and resizes without end. Counts its nodes in a file that others can read."""
import gc
import mmap
import random
import sys

# Nodes made, and nodes that are gone.
with open(sys.argv[1], "r+b") as counted:
    COUNTS = memoryview(mmap.mmap(counted.fileno(), 16)).cast("Q")


class Node:
    def __init__(self, other):
        COUNTS[0] += 1
        self.other = other
        self.rows = [other] * random.randrange(8)
        self.named = {"k%d" % number: number for number in range(random.randrange(20))}

    def __del__(self):
        COUNTS[1] += 1


KEPT = {}
LISTS = [[] for _ in range(50)]


def turn(number):
    # Each holds the one before, in chains of a hundred: a chain without end would never go.
    node = Node(KEPT.get(number - 1) if number % 100 else None)
    KEPT[number] = node
    LISTS[number % 50].append((number, str(number)))
    if number % 7 == 0:
        a, b = Node(None), Node(None)
        a.other, b.other = b, a
    if number % 1000 == 0:
        gc.collect()
    if len(KEPT) > 3000:
        for key in list(KEPT)[:2000]:
            del KEPT[key]
    if len(LISTS[0]) > 300:
        for held in LISTS:
            held.sort(key=lambda pair: pair[1])
            del held[:200]


def main():
    print("READY", flush=True)
    number = 0
    while True:
        number += 1
        turn(number)


main()
