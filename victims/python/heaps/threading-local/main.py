import queue
import sys
import threading

CONTEXT = threading.local()
WORK = [queue.Queue() for _ in range(4)]      # one for each thread: all get as much


def handle(number):
    if not hasattr(CONTEXT, "history"):
        CONTEXT.history = []
    CONTEXT.history.append({"request": number, "body": "b" * 300})


def worker(work):
    while True:
        number = work.get()
        handle(number)
        work.task_done()


for n in range(4):
    threading.Thread(target=worker, args=(WORK[n],), name="pool-%d" % n, daemon=True).start()


def step():
    for i in range(8000):
        WORK[i % 4].put(i)
    for work in WORK:
        work.join()


def main():
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        step()
    print("READY", flush=True)
    for _ in sys.stdin:          # each line: one step more
        step()
        print("DONE", flush=True)


if __name__ == "__main__":
    main()
