#!/bin/sh
# A day of three services in ten minutes: redis, Node and Python are recorded under load, with files
# in turn. They are exported as tables whose intervals stand for a minute each, and queried in SQL.
# `benches/fleet_day.sh [SECONDS] [FOLDER]`; needs redis-server, redis-benchmark, node, python3,
# and a python with duckdb (HEAPR_TEST_PYTHON). HEAPR names another program, SAMPLE another mean.
set -eu
seconds=${1:-600}
folder=${2:-$(mktemp -d)}
heapr=${HEAPR:-heapr}
python=${HEAPR_TEST_PYTHON:-python3}
sample=${SAMPLE:-512K}
mkdir -p "$folder"
cd "$folder"
export XDG_RUNTIME_DIR="$folder/run"
mkdir -p -m 700 "$XDG_RUNTIME_DIR"
port=$((20000 + $$ % 10000))
pids=
# Ends the processes that were started here, by pid, in any case.
trap 'kill $pids 2> /dev/null || true' EXIT

cat > service.js <<'JS'
const kept = []; const zlib = require('zlib')
setInterval(() => { kept.push(Buffer.alloc(20000)); zlib.deflateSync(Buffer.alloc(100000)) }, 20)
JS
cat > service.py <<'PY'
import json, time
cache = {}
n = 0
while True:
    n += 1
    cache[n % 5000] = json.loads(json.dumps({"n": n, "text": "x" * 2000}))
    time.sleep(0.002)
PY
# The interpreter itself, because python3 may be a script that starts one.
interpreter=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
rotate=$((seconds / 4 + 1))s
PYTHONMALLOC=malloc "$interpreter" service.py & pids="$pids $!"; python_pid=$!
redis-server --port $port --save '' --appendonly no --logfile "$folder/redis.log" & pids="$pids $!"; redis_pid=$!
node service.js & pids="$pids $!"; node_pid=$!
sleep 1
for service in redis:$redis_pid node:$node_pid python:$python_pid; do
    name=${service%:*}
    $heapr start "$name" --sample "$sample" --rotate "$rotate" -o "$name.heapr" --pid "${service#*:}" > /dev/null
done
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt $end ]; do
    redis-benchmark -p $port -n 20000 -q -r 100000 -d 200 -t set,lpush > /dev/null 2>&1 || sleep 1
    sleep 1
done
for service in redis node python; do
    recorder=$($heapr status $service --format json | $python -c 'import json, sys; print(json.load(sys.stdin)["sessions"][0]["recorder_pid"])')
    echo "$service: recorder $(awk '/VmHWM/ { print $2 }' /proc/"$recorder"/status) KiB at most, $(awk '{ print $14 + $15 }' /proc/"$recorder"/stat) ticks of $((seconds * 100))"
    $heapr stop $service -q > /dev/null
    for file in $service.*.heapr $service.heapr; do
        # A day has 1,440 minutes: an interval stands for one of them.
        $heapr export "$file" --to parquet -o tables --service $service --interval "$((seconds * 1000 / 1440 + 1))ms" 2> /dev/null
    done
done
du -sh tables
du -sh tables/*
$python - <<'PY'
import duckdb, time
db = duckdb.connect()
for table in ("samples", "processes"):
    db.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('tables/{table}/**/*.parquet')")
db.execute("""CREATE TABLE lines AS SELECT s.stack_id,
    string_agg(coalesce(nullif(f.function, ''), f.module), ' <- ' ORDER BY s.position, f.depth) FILTER (WHERE s.position < 6) line
  FROM (SELECT DISTINCT stack_id, position, frame_id FROM read_parquet('tables/stacks/**/*.parquet')) s
  JOIN (SELECT frame_id, depth, max(function) function, any_value(module) module FROM read_parquet('tables/frames/**/*.parquet') GROUP BY ALL) f
    USING (frame_id) GROUP BY s.stack_id""")
def ask(what, sql):
    started = time.time()
    rows = db.execute(sql).fetchall()
    print(f"\n{what} ({time.time() - started:.2f} s)")
    for row in rows:
        print("   ", *row)
ask("rows, intervals, bytes live and allocated, by service", """SELECT service, count(*), count(DISTINCT time),
    sum(outstanding_bytes) FILTER (WHERE is_last = 1), sum(total_bytes) FROM samples GROUP BY 1 ORDER BY 1""")
ask("how each grew: bytes live at the end of each quarter of the day", """SELECT service, list(bytes ORDER BY part) FROM (
    SELECT service, part, arg_max(bytes, time) bytes FROM (
      SELECT service, time, ntile(4) OVER (PARTITION BY service ORDER BY time) part, bytes FROM (
        SELECT service, time, sum(outstanding_bytes)::BIGINT bytes FROM samples GROUP BY 1, 2)) GROUP BY 1, 2) GROUP BY 1 ORDER BY 1""")
ask("largest stacks of the fleet", """SELECT service, outstanding_bytes, outstanding_bytes_plus_minus, left(line, 150)
    FROM samples LEFT JOIN lines USING (stack_id) WHERE is_last = 1 ORDER BY 2 DESC LIMIT 6""")
ask("who churns", """SELECT service, sum(total_bytes)::BIGINT bytes, left(any_value(line), 150)
    FROM samples LEFT JOIN lines USING (stack_id) GROUP BY service, stack_id ORDER BY 2 DESC LIMIT 5""")
PY
for service in redis node python; do
    echo "report $service: $($heapr report $service.heapr --totals 2> /dev/null | grep '^Outstanding')"
done
