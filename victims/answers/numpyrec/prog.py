# picks the rows of a record array that are wanted, batch after batch
import sys
import numpy as np
def pick_rows(rows, n):
    wanted = [True, n % 2 == 0, True, n % 3 == 0]
    return len(rows[wanted])
def main():
    rows = np.recarray((4,), dtype=[("x", int), ("y", float), ("z", int)])
    print(sum(pick_rows(rows, n) for n in range(int(sys.argv[1]))))
main()
