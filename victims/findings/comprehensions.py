"""A registry that keeps what each request computes, made by comprehensions."""
# run: python
# finding: growth in register (comprehensions.py
import time

REGISTRY = {}


def register(number):
    REGISTRY[number] = {str(key): [key * 1000 + part for part in range(20)] for key in range(4)}


def answer(number):
    return sum(len(str(part) * 5) for part in range(number % 40))


total = 0
for number in range(1600):
    register(number)
    total += answer(number)
    if number % 20 == 0:
        time.sleep(0.006)
print(total, len(REGISTRY))
