# a client that fills redis with small answers, forgets nine of ten, and then waits
import socket, sys, time
path, count = sys.argv[1], int(sys.argv[2])
for _ in range(600):
    try:
        server = socket.socket(socket.AF_UNIX); server.connect(path); break
    except OSError:
        time.sleep(0.1)
answers = server.makefile("rb")
def ask(*commands):
    server.sendall(b"".join(b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in c) for c in commands))
    for _ in commands: answers.readline()
for start in range(0, count, 500):
    ask(*([b"SET", b"answer %d" % n, b"x" * (100 + n * 37 % 400)] for n in range(start, start + 500)))
for start in range(0, count, 500):
    ask(*([b"DEL", b"answer %d" % n] for n in range(start, start + 500) if n % 10))
time.sleep(3)
ask([b"SHUTDOWN", b"NOSAVE"])
