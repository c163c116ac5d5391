"""Fills collections to all degrees, and tells of each: address, kind, length, slots, and its name. The
numbers of slots are those that sys.getsizeof shows while a collection grows."""
import collections
import os
import sys

LISTS, DICTS, TEXTS, SETS, FROZEN, DEQUES = [], [], [], [], [], []
OLD_ORDERED = collections.OrderedDict((number, []) for number in range(3))
DEFAULTS = [collections.defaultdict(list, {number: [] for number in range(40)})]


class Instance:
    def __init__(self):
        self.first = self.second = []


INSTANCES = [Instance() for _ in range(20)]
REAL = [instance.__dict__ for instance in INSTANCES[:5]]


def most_by_size(make, count):
    """Largest length at each size of a collection that grows."""
    most = {}
    grown = make()
    for number in range(count):
        most[sys.getsizeof(grown)] = len(grown)
        if isinstance(grown, dict):
            grown[str(number) if make is str_dict else number] = number
        elif isinstance(grown, list):
            grown.append(number)
    most.pop(sys.getsizeof(grown), None)
    return most


def str_dict():
    return {}


def num_dict():
    return {}


def fill():
    for count in [0, 1, 4, 5, 6, 9, 16, 17, 63, 64, 65, 100, 1000, 3000, 90_000]:
        LISTS.append([None])
        LISTS[-1].extend(iter(range(count)))
        LISTS.append(list(range(count)))
        DICTS.append({number: number for number in range(count)})
        TEXTS.append({str(number): number for number in range(count)})
        SETS.append(set(range(count)))
        FROZEN.append(frozenset(range(count)))
        DEQUES.append(collections.deque(range(count)))
    for emptied in [list(range(1000)), list(range(50))]:
        del emptied[1:]
        LISTS.append(emptied)
    for emptied in [dict.fromkeys(range(1000)), dict.fromkeys(range(50))]:
        for key in list(emptied)[3:]:
            del emptied[key]
        DICTS.append(emptied)
    DICTS.append({})
    DICTS[-1]["gone"] = 1
    DICTS[-1].clear()
    emptied = set(range(1000))
    for key in list(emptied)[3:]:
        emptied.remove(key)
    SETS.append(emptied)


def tell(out):
    of_dicts = {**most_by_size(num_dict, 180_000), **most_by_size(str_dict, 180_000)}
    of_dicts[sys.getsizeof({})] = 0
    set_bytes, deque_bytes = sys.getsizeof(set()), sys.getsizeof(collections.deque())
    for kind, all_of in [("list", LISTS), ("dict", DICTS), ("dict", TEXTS), ("set", SETS), ("set", FROZEN),
                         ("deque", DEQUES), ("dict", DEFAULTS), ("dict", [OLD_ORDERED])]:
        for held in all_of:
            size = sys.getsizeof(held)
            if kind == "list":
                slots = (size - sys.getsizeof([])) // 8
            elif kind == "set":
                slots = 8 if size == set_bytes else (size - set_bytes) // 16
            elif kind == "deque":
                slots = 64 * (1 + (size - deque_bytes) // 528)
            else:
                slots = of_dicts.get(size, -1)
            out.write("%d %s %d %d\n" % (id(held), type(held).__name__, len(held), slots))
    for instance in INSTANCES[:5]:
        out.write("%d attributes 0 -1\n" % id(instance.__dict__))


fill()
with open(sys.argv[1], "w") as told:
    tell(told)
os.write(1, b"READY\n")
os.read(0, 1)
