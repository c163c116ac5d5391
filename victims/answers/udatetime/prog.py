# reads the times of log lines
import sys, time
import udatetime
def read_line(line):
    return udatetime.from_string(line.split(" ", 1)[0])
def main():
    for n in range(int(sys.argv[1])):
        read_line("2008-09-08T22:47:31-07:00 GET /%d" % n)
        if n % 500 == 0: time.sleep(0.001)
main()
