# reads replies of a server as hiredis's parser gets them, many of which are maps
import sys
import hiredis
def read_reply(reader, n):
    fields = b"".join(b"$7\r\nfield%02d\r\n$12\r\nvalue %06d\r\n" % (k, n) for k in range(10))
    reader.feed(b"%10\r\n" + fields)
    return len(reader.gets())
def main():
    reader = hiredis.Reader()
    print(sum(read_reply(reader, n) for n in range(int(sys.argv[1]))))
main()
