# Sends requests to a server of soak_app.* by several threads, and prints the number of answers.
# An answer that is wrong, late or missing ends it with status 1.
# usage: soak_client.py http|fastcgi|lines PORT [SCRIPT]
import http.client
import os
import socket
import struct
import sys
import threading
import time

KIND, PORT = sys.argv[1], int(sys.argv[2])
THREADS, TIMEOUT_S = 4, 60
answered = 0
lock = threading.Lock()


def expected(number):
    """Returns the answer of soak_app.*."""
    return sum(1000 + (number + k) % 3000 for k in range(50))


class Http:
    """Client of HTTP; it keeps connections open if the server does."""

    def __init__(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=TIMEOUT_S)

    def ask(self, number):
        self.connection.request("GET", f"/{number}")
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body)
        return int(body)


class Lines:
    def __init__(self):
        self.file = socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S).makefile("rw")

    def ask(self, number):
        self.file.write(f"{number}\n")
        self.file.flush()
        return int(self.file.readline())


class FastCgi:
    def ask(self, number):
        with socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S) as connection:
            words = {"REQUEST_METHOD": "GET", "SCRIPT_FILENAME": sys.argv[3], "QUERY_STRING": str(number)}
            pairs = b"".join(struct.pack("BB", len(k), len(v)) + (k + v).encode() for k, v in words.items())
            part = lambda kind, content: struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content
            connection.sendall(part(1, struct.pack(">HB5x", 1, 0)) + part(4, pairs) + part(4, b"") + part(5, b""))
            file, output = connection.makefile("rb"), b""
            while True:
                _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", file.read(8))
                content = file.read(length + padding)[:length]
                if kind == 6:
                    output += content
                elif kind == 7:
                    raise RuntimeError(content)
                elif kind == 3:
                    return int(output.split(b"\r\n\r\n", 1)[1])


def work(first):
    global answered
    number, server = first, None
    begun = time.monotonic()
    while True:
        try:
            server = server or {"http": Http, "lines": Lines, "fastcgi": FastCgi}[KIND]()
            answer = server.ask(number)
            assert answer == expected(number), (number, answer, expected(number))
        except Exception as error:
            if answered == 0 and time.monotonic() - begun < TIMEOUT_S:
                server = None
                time.sleep(0.1)
                continue
            print("soak_client:", repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        with lock:
            answered += 1
        number += THREADS


for first in range(THREADS):
    threading.Thread(target=work, args=(first,), daemon=True).start()
while True:
    time.sleep(0.1)
    print(answered, flush=True)
