"""A queue of bounded length: nothing grows, nothing stands out."""
# run: python
# finding: none
import collections
import time

QUEUE = collections.deque(maxlen=100)
total = 0
for number in range(3000):
    QUEUE.append(bytearray(600 + number % 200))
    total += len(QUEUE[0])
    if number % 25 == 0:
        time.sleep(0.0025)
print(total)
