# reads dates of messages, each relative to the time of its message
import sys, time
from datetime import datetime, timedelta
import dateparser
START = datetime(2023, 1, 1)
def read_date(text, sent):
    return dateparser.parse(text, languages=["en"], settings={"RELATIVE_BASE": sent})
def main():
    for n in range(int(sys.argv[1])):
        read_date("2 hours ago", START + timedelta(seconds=n))
        time.sleep(0.001)
main()
