# Death: a dict of the module that only grows, of small objects: 30 lists with two texts each an order.
import os, time

orders = {}


def remember(number):
    orders[number] = [(f"order {number}", f"item {number}-{item}") for item in range(30)]


def main():
    while not os.path.exists("go"):
        time.sleep(0.001)
    number = 0
    while True:
        for _ in range(20):
            remember(number)
            number += 1
        time.sleep(0.004)


main()
