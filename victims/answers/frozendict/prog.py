# writes the settings of each job to a log
import sys, time
from frozendict import frozendict
def log_settings(settings):
    return len(repr(settings))
def main():
    for n in range(int(sys.argv[1])):
        settings = frozendict({"job": n, "queue": "default", "tries": 3, "hosts": n % 7})
        log_settings(settings)
        if n % 20 == 0: time.sleep(0.001)
main()
