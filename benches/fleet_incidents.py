#!/usr/bin/env python3
"""Question eleven of docs/tables.md, asked of a simulated week: a thousand processes on forty
machines, whose incidents `heapr incidents --tables` writes. The answer must be that of the counts
kept here. A receiver of OTLP logs takes the same incidents, and must count the same deaths by holder. Needs duckdb, and root for the machines' names (unshare --uts). HEAPR names the program.

    benches/fleet_incidents.py FOLDER [PROCESSES [MACHINES]]
"""
import collections, http.server, json, os, pathlib, random, subprocess, sys, threading, time

import duckdb

HEAPR = os.environ.get("HEAPR", "heapr")
PAGE = pathlib.Path(__file__).parent.parent / "docs/tables.md"
DAY_NS = 86_400 * 10**9
FUNCTIONS = [f"{kind}.{verb} ({kind.lower()}.py:{line})" for line, (kind, verb) in enumerate(
    [("OrderCache", "remember"), ("Session", "open"), ("Index", "add"), ("Upload", "read"), ("Log", "append")], 10)]


def incident(number, chance, now_ns):
    """Returns an incident, as the schema heapr.incident/1 has it."""
    function = chance.choices(FUNCTIONS, [50, 20, 15, 10, 5])[0]
    cause = chance.choices(["kernel_group", "runtime_limit", "crash"], [80, 10, 10])[0]
    kind = chance.choices(["death", "warning"], [9, 1])[0]
    pod = f"{function.split('.')[0].lower()}-{chance.randrange(60)}"
    return {
        "schema": "heapr.incident/1", "number": number, "kind": kind,
        "time_unix_ns": now_ns - chance.randrange(14 * DAY_NS), "cause": {"kind": cause, "certainty": "fact",
        "group": None, "limit_bytes": 256 << 20, "evidence": []},
        "process": {"pid": 1000 + number, "name": "web", "executable": "/bin/web", "host": pod, "group": f"/kubepods/{pod}"},
        "holders": [{"kind": "class", "name": "V8's heap", "bytes": 200 << 20},
                    {"kind": "function", "name": function, "bytes": chance.randrange(1 << 27)}],
        "sentences": [f"web ({1000 + number}) was killed."],
    }


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes OTLP logs, and keeps the attributes of each record."""
    records = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/logs", self.path
        for of_resource in body["resourceLogs"]:
            for record in (one for scope in of_resource["scopeLogs"] for one in scope["logRecords"]):
                values = {one["key"]: next(iter(one["value"].values())) for one in record["attributes"] + of_resource["resource"]["attributes"]}
                self.records.append({**values, "time": int(record["timeUnixNano"]), "severity": record["severityText"]})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = pathlib.Path(sys.argv[1])
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    machines = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    chance, now_ns = random.Random(1), time.time_ns()
    made = []
    for machine in range(machines):
        own = folder / f"machine-{machine}"
        own.mkdir(parents=True, mode=0o700)
        for number in range(1, processes // machines + 1):
            made.append(incident(number, chance, now_ns))
            (own / f"incident-{number:06}.json").write_text(json.dumps(made[-1]))
        words = [HEAPR, "incidents", "--folder", own, "--tables", folder / "tables", "--format", "json",
                 "--otlp", f"http://127.0.0.1:{server.server_port}"]
        script = f"hostname machine-{machine} && exec \"$@\""
        subprocess.run(["unshare", "--uts", "sh", "-c", script, "sh", *words], check=True, stdout=subprocess.DEVNULL)
    counted = [one["cause"]["kind"] != "crash" and one["kind"] == "death" for one in made]
    # Parquet has microseconds.
    last = max(one["time_unix_ns"] for one in made) // 1000
    is_late = lambda one: one["time_unix_ns"] // 1000 >= last - 7 * DAY_NS // 1000
    deaths, pods = collections.Counter(), collections.defaultdict(set)
    for one in (one for one, is_counted in zip(made, counted) if is_counted and is_late(one)):
        function = one["holders"][1]["name"]
        deaths[function] += 1
        pods[function].add(one["process"]["host"])
    view, question = [part.split("```")[0] for part in PAGE.read_text().split("```sql incidents\n")[1:]]
    database = duckdb.connect()
    database.execute(view.replace("DIR/", f"{folder}/tables/"))
    started = time.time()
    found = database.execute(question).fetchall()
    spent = time.time() - started
    wanted = {(function, deaths[function], len(pods[function])) for function in deaths}
    size = sum(path.stat().st_size for path in folder.glob("tables/**/*.parquet"))
    for row in found:
        print(*row, sep="\t")
    assert {row[:3] for row in found} == wanted, wanted
    assert len(Receiver.records) == len(made), len(Receiver.records)
    received = collections.Counter(
        one["heapr.function.name"] for one in Receiver.records
        if one["severity"] == "ERROR" and one["heapr.cause"] != "crash" and one["time"] // 1000 >= last - 7 * DAY_NS // 1000)
    assert received == deaths, (received, deaths)
    print(f"the receiver of OTLP logs has {len(Receiver.records)} records, and the same deaths by function")
    print(f"{len(made)} incidents of {machines} machines, {size} bytes of Parquet; asked in {spent:.3f} s: as counted here")


main()
