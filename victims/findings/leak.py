"""A list of results at module level that every request adds to."""
# run: python
# finding: growth in handle (leak.py
import time

RESULTS = []


def handle(number):
    words = [("word %d of the request " % word) * 3 for word in range(4)]
    if number % 2 == 0:
        RESULTS.append(bytearray(1500))
    return len(words)


total = 0
for number in range(2400):
    total += handle(number)
    if number % 20 == 0:
        time.sleep(0.006)
print(total, len(RESULTS))
