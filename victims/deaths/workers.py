# Death: four workers, none of which is large, exceed the limit together.
import os, time

while not os.path.exists("go"):
    time.sleep(0.001)
for _ in range(3):
    if os.fork() == 0:
        break

pages = []


def render(number):
    pages.append(bytearray(b"x" * 100_000))


number = 0
while True:
    render(number)
    number += 1
    time.sleep(0.005)
