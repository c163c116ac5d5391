"""A batch that reads all chunks of a file before it adds them up."""
# run: python
# finding: peak in add_up_all
import time


def add_up_all():
    chunks = [bytearray(20000) for _ in range(1500)]
    return sum(len(chunk) for chunk in chunks)


def step(number):
    return len(bytearray(3000 + number % 5))


total = 0
for number in range(1200):
    total += step(number)
    if number == 500:
        total += add_up_all()
    if number % 10 == 0:
        time.sleep(0.0025)
print(total)
