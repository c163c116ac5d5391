"""A dictionary that is used as a cache by a key with a time stamp in it."""
# run: python
# finding: growth in
import time

CACHE = {}


def render(key):
    if key not in CACHE:
        CACHE[key] = bytearray(2000)
    return len(CACHE[key])


total = 0
for number in range(5000):
    key = number if number % 3 == 0 else number % 40
    total += render("page %d" % key)
    if number % 40 == 0:
        time.sleep(0.0025)
print(total)
