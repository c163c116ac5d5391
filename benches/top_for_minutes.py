"""heapr top on servers at work: redis, FastAPI (uvicorn), Node and Java, each for some minutes.

    HEAPR=target/release/heapr python3 benches/top_for_minutes.py [MINUTES [SERVER…]]

Each server runs under a steady load, by itself, with `heapr start --sample auto`, and with `heapr top` on a
terminal. Printed are the processor time of a request in each phase, and four times the figures of `heapr top --once`
beside those of `heapr report` of the same session, while the load rests. At the end `heapr top` is killed by
SIGKILL: no session, file, process or mapping may be left, and the server works on. FastAPI needs the packages
fastapi and uvicorn; what is missing is said.
"""

import concurrent.futures
import fcntl
import glob
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

HEAPR = os.path.abspath(os.environ.get("HEAPR", "target/release/heapr"))
REQUESTS_A_SECOND = 40

FASTAPI = """
from fastapi import FastAPI
app, kept = FastAPI(), []
@app.get("/r")
async def r(n: int = 0):
    kept.append({"n": n, "text": "x" * 700})
    return {"n": n, "items": [{"id": i, "name": "item %d" % i} for i in range(40)]}
"""
NODE = """
const kept = [];
require('http').createServer((request, response) => {
  kept.push(Buffer.alloc(900, 1));
  response.end(JSON.stringify(Array.from({length: 40}, (_, i) => ({id: i, name: 'item ' + i}))));
}).listen(+process.argv[2], '127.0.0.1');
"""
JAVA = """
import com.sun.net.httpserver.*; import java.net.*; import java.nio.*; import java.util.*;
public class S {
    static List<ByteBuffer> kept = new ArrayList<>();
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(4));
        server.createContext("/r", exchange -> {
            synchronized (kept) { kept.add(ByteBuffer.allocateDirect(900)); }
            byte[] answer = "{}".repeat(100).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
"""


def command(server, folder, port):
    """The command of a server, whose sources are written into the folder."""
    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    if server == "redis":
        return ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    if server == "fastapi":
        write("app.py", FASTAPI)
        return [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
    if server == "node":
        write("s.js", NODE)
        return ["node", "s.js", str(port)]
    write("S.java", JAVA)
    subprocess.run(["javac", "S.java"], cwd=folder, check=True)
    return ["java", "S", str(port)]


class Load(threading.Thread):
    """A client that sends a steady load, and rests when it is told to."""

    def __init__(self, server, port):
        super().__init__(daemon=True)
        self.server, self.port, self.count = server, port, 0
        self.works, self.ends = threading.Event(), threading.Event()
        self.connection = None

    def run(self):
        number = 0
        while not self.ends.is_set():
            if not self.works.wait(0.1):
                continue
            begin = time.monotonic()
            try:
                for _ in range(25 if self.server == "redis" else 2):
                    number += 1
                    self.ask(number)
                    self.count += 1
            except (OSError, http.client.HTTPException):
                self.connection = None
            time.sleep(max(0, 1 / REQUESTS_A_SECOND - (time.monotonic() - begin)))

    def ask(self, number):
        if self.server == "redis":
            self.connection = self.connection or socket.create_connection(("127.0.0.1", self.port))
            key, value = b"key:%d" % (number % 20000), b"x" * (50 + number % 2000)
            self.connection.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value))
            self.connection.recv(100)
            return
        self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.connection.request("GET", f"/r?n={number}")
        self.connection.getresponse().read()


class Run:
    """One server with its load."""

    def __init__(self, server, minutes, port):
        self.server, self.seconds, self.port = server, minutes * 60, port
        self.lines, self.faults = [], []
        self.folder = tempfile.mkdtemp(prefix="top-soak-")

    def say(self, text):
        self.lines.append(f"{self.server:8} {text}")

    def heapr(self, *words):
        environment = {**os.environ, "TMPDIR": self.folder}
        return subprocess.run([HEAPR, *words], capture_output=True, text=True, env=environment, check=False)

    def processor_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def phase(self, name, seconds):
        begin, count = self.processor_seconds(), self.load.count
        time.sleep(seconds)
        requests = self.load.count - count
        each = (self.processor_seconds() - begin) / max(requests, 1)
        self.say(f"{name:20} {requests:8} requests, {each * 1e6:6.0f} us of processor time each")

    def compare(self, session):
        """Figures of the view beside those of the report, while nothing happens."""
        self.load.works.clear()
        time.sleep(3)
        file = glob.glob(os.path.join(self.folder, "heapr.top.*.heapr"))[0]
        self.heapr("update", session, "--flush")
        shown = self.heapr("top", session, "--once").stdout
        blocks = json.loads(self.heapr("report", file, "--totals", "--format", "json").stdout)["totals"]["outstanding_count"]
        is_right = f"in {blocks:,} block" in shown
        self.say(f"report: {blocks:,} blocks live; top: {'the same' if is_right else shown}")
        if not is_right:
            self.faults.append("another number of blocks")
        self.load.works.set()

    def missing(self):
        if self.server == "fastapi":
            found = subprocess.run([sys.executable, "-c", "import fastapi, uvicorn"], check=False)
            return "fastapi, or no uvicorn" if found.returncode else None
        programs = {"redis": ["redis-server"], "node": ["node"], "java": ["javac", "java"]}[self.server]
        return next((program for program in programs if not shutil.which(program)), None)

    def play(self):
        missing = self.missing()
        if missing:
            shutil.rmtree(self.folder, ignore_errors=True)
            return self.say(f"not run: there is no {missing}")
        words = command(self.server, self.folder, self.port)
        child = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL)
        self.pid = child.pid
        self.load = Load(self.server, self.port)
        self.load.start()
        try:
            time.sleep(3)
            self.load.works.set()
            time.sleep(20)
            self.phase("alone", 60)
            base = f"base-{self.server}-{self.pid}"
            self.heapr("start", base, "-q", "--sample", "auto", "--pid", str(self.pid), "-o", os.path.join(self.folder, "base.heapr"))
            self.phase("start --sample auto", 60)
            self.heapr("cancel", base)
            self.watch()
            if child.poll() is not None:
                self.faults.append("the server has ended")
            self.phase("alone again", 60)
        finally:
            self.load.ends.set()
            child.kill()
            shutil.rmtree(self.folder, ignore_errors=True)

    def watch(self):
        top, terminal = pty.fork()
        if top == 0:
            os.environ.update(TERM="xterm-256color", TMPDIR=self.folder)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.execv(HEAPR, [HEAPR, "top", str(self.pid)])
        threading.Thread(target=_drain, args=(terminal,), daemon=True).start()
        time.sleep(8)
        session = f"top-{self.pid}"
        for quarter in range(1, 5):
            self.phase(f"top, quarter {quarter}", self.seconds / 4)
            self.compare(session)
        os.kill(top, signal.SIGKILL)
        os.waitpid(top, 0)
        end = time.monotonic() + 20
        while (left := self.left(session)) and time.monotonic() < end:
            time.sleep(0.1)
        self.say(f"left after kill -9: {left or 'nothing'}")
        self.faults += left

    def left(self, session):
        found = [name for name in os.listdir(self.folder) if name.startswith("heapr.top.")]
        with open(f"/proc/{self.pid}/maps", encoding="utf-8", errors="replace") as file:
            found += [line.strip() for line in file if "heapr" in line]
        return found + [session] * (session in self.heapr("status").stdout)


def _drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    runs = [Run(server, minutes, 17000 + number) for number, server in enumerate(sys.argv[2:] or ["redis", "fastapi", "node", "java"])]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(Run.play, runs))
    for run in runs:
        print("\n".join(run.lines))
    faults = [f"{run.server}: {fault}" for run in runs for fault in run.faults]
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
