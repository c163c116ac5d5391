"""A buffer of the same size for each message, dropped at once."""
# run: python
# finding: churn in
import time


def encode(number):
    return len(bytearray(700))


total = 0
for number in range(120000):
    total += encode(number)
    if number % 1000 == 0:
        time.sleep(0.0025)
print(total)
