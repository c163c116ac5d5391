"""A dictionary that is used as a cache by a key with a time stamp in it."""
# run: python
# finding: growth in render (cache_without_eviction.py
import time

CACHE = {}


def render(key):
    if key not in CACHE:
        CACHE[key] = bytearray(2000)
    return len(CACHE[key])


total = 0
for number in range(2400):
    key = number if number % 3 == 0 else number % 40
    total += render("page %d" % key)
    if number % 20 == 0:
        time.sleep(0.006)
print(total)
