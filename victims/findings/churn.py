"""A buffer of the same size for each message, dropped at once."""
# run: python
# finding: churn in encode (churn.py
import time


def encode(number):
    return len(bytearray(700))


total = 0
for number in range(40000):
    total += encode(number)
    if number % 330 == 0:
        time.sleep(0.0025)
print(total)
