"""Small objects that are never given up; samples tell objects of Python's own allocator, too."""
# run: python
# options: --sample 64K
# finding: growth in note_visitor (objects_sampled.py
import time

VISITORS = []


def note_visitor(number):
    VISITORS.append((number, float(number), "visitor %d" % number))
    return len([str(step) for step in range(5)])


total = 0
for number in range(60000):
    total += note_visitor(number)
    if number % 500 == 0:
        time.sleep(0.006)
print(total, len(VISITORS))
