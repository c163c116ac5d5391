# Death: a dict of the module that only grows, of small objects: 30 lists with two texts each an order. The file `count`
# has the number of orders as a binary number of 64 bits.
import os, time

orders = {}


def remember(number):
    orders[number] = [(f"order {number}", f"item {number}-{item}") for item in range(30)]


def main():
    while not os.path.exists("go"):
        time.sleep(0.001)
    file = os.open("count", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    number = 0
    while True:
        for _ in range(20):
            remember(number)
            number += 1
        os.pwrite(file, number.to_bytes(8, "little"), 0)
        time.sleep(0.004)


main()
