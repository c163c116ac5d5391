# decodes telegrams, many of which are damaged
import sys, time
import cbor2
def read_telegram(data):
    try: return cbor2.loads(data)
    except cbor2.CBORDecodeError: return None
def main():
    bad = b"\xbf\x01\xa1\x02\x78\x80" + b"\xff" * 128
    for n in range(int(sys.argv[1])):
        read_telegram(bad)
        read_telegram(cbor2.dumps({"n": n}))
        if n % 20 == 0: time.sleep(0.001)
main()
