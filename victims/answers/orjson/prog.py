# answers requests whose bodies are often no JSON
import sys
import orjson
def read_request(body):
    try: return orjson.loads(body)
    except orjson.JSONDecodeError: return None
def main():
    for n in range(int(sys.argv[1])): read_request("Whatever %d" % n * 20)
main()
