# writes tables whose rows have numbers
import sys
import ujson
def write_table(first):
    rows = {number: [first] for number in range(first, first + 100)}
    return ujson.dumps(rows)
def main():
    for n in range(int(sys.argv[1])): write_table(1000 + n * 100)
main()
