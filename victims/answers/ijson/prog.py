# reads the items of a feed with the fast backend, message after message
import io, sys
import ijson.backends.yajl2_c as ijson
def read_feed(n):
    text = '{"items": [%s]}' % ",".join('{"id": %d, "name": "item %d"}' % (k, n) for k in range(20))
    return sum(1 for item in ijson.items(io.BytesIO(text.encode()), "items.item"))
def main():
    print(sum(read_feed(n) for n in range(int(sys.argv[1]))))
main()
