# finds the area around each stop
import sys, time
from shapely.geometry import Point
def area_of_stop(x, y):
    return Point(x, y).buffer(0.5).area
def main():
    for n in range(int(sys.argv[1])):
        area_of_stop(n, n)
        if n % 50 == 0: time.sleep(0.001)
main()
