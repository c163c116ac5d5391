"""Small objects of which the last thousand are kept; a recording of samples accuses nobody."""
# run: python
# options: --sample 64K
# finding: none
# untold: Nothing grows
import collections
import time

VISITORS = collections.deque(maxlen=1000)


def note_visitor(number):
    VISITORS.append((number, float(number), "visitor %d" % number))
    return len([str(step) for step in range(5)])


total = 0
for number in range(60000):
    total += note_visitor(number)
    if number % 500 == 0:
        time.sleep(0.006)
print(total, len(VISITORS))
