# A given number of objects as programs have them: instances, dicts, lists and strings. Then it waits for lines;
# with "guppy" each line takes guppy3's heap of this process, and prints its time and the memory that it added.
import gc
import sys
import time


class Order:
    def __init__(self, number):
        self.name = "order-%d" % number
        self.rows = [number, number + 1]
        self.facts = {"price": number * 1.5, "state": "open"}


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


def main():
    # An order has seven objects: itself, name, rows, facts, price and two numbers.
    count = int(sys.argv[1]) // 7
    gc.disable()
    orders = [Order(number) for number in range(1000, 1000 + count)]
    gc.enable()
    if sys.argv[2:] == ["guppy"]:
        from guppy import hpy

        # Its first use imports modules.
        heap = hpy()
        print("READY", flush=True)
        for _ in sys.stdin:
            before, begin, begin_cpu = resident_kib(), time.perf_counter(), time.process_time()
            found = heap.heap()
            objects = found.count
            found.byclodo[0]
            spent, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
            print(spent, cpu, resident_kib() - before, objects, flush=True)
    else:
        print("READY", flush=True)
        sys.stdin.read()
    return orders


main()
