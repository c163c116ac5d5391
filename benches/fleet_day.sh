#!/bin/sh
# A day of three services in ten minutes: redis, Node and Python are recorded under load, written as
# tables of which each second stands for a minute or two, and asked about in SQL.
# `benches/fleet_day.sh [SECONDS] [FOLDER]`; needs redis-server, node, python3, and a python with
# duckdb (HEAPR_TEST_PYTHON).
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
$heapr start redis --sample "$sample" -o redis.heapr -- redis-server --port $port --save '' --appendonly no > /dev/null
$heapr start node --sample "$sample" -o node.heapr -- node service.js > /dev/null
PYTHONMALLOC=malloc $heapr start python --sample "$sample" -o python.heapr -- python3 service.py > /dev/null
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt $end ]; do
    redis-benchmark -p $port -n 20000 -q -r 100000 -t set,lpush > /dev/null 2>&1 || sleep 1
    sleep 1
done
for service in redis node python; do
    $heapr stop $service > /dev/null
    # A day has 1,440 minutes: an interval stands for one of them.
    $heapr export $service.heapr --to parquet -o tables --service $service --interval "$((seconds * 1000 / 1440 + 1))ms"
    $heapr report $service.heapr --totals | tail -4
done
for service in redis node python; do
    pid=$($heapr info $service.heapr --format json | $python -c 'import json, sys; print(json.load(sys.stdin)["processes"][0]["pid"])')
    kill "$pid" 2> /dev/null || true
done
du -sh tables
$python - <<'PY'
import duckdb, time
db = duckdb.connect()
db.execute("CREATE VIEW samples AS SELECT * FROM read_parquet('tables/samples/**/*.parquet')")
def ask(what, sql):
    started = time.time()
    rows = db.execute(sql).fetchall()
    print(f"\n{what} ({time.time() - started:.2f} s)")
    for row in rows:
        print("   ", *row)
ask("rows and bytes by service", "SELECT service, count(*), count(DISTINCT time), sum(outstanding_bytes) FILTER (is_last = 1), sum(total_bytes) FROM samples GROUP BY 1 ORDER BY 1")
ask("how each grew, in quarters of the day", """SELECT service, quarter, sum(bytes) FROM (SELECT service, ntile(4) OVER (PARTITION BY service ORDER BY time) quarter, time,
    sum(outstanding_bytes) bytes FROM samples GROUP BY service, time) WHERE true GROUP BY 1, 2 ORDER BY 1, 2""")
ask("largest stacks", """SELECT s.service, sum(s.outstanding_bytes) bytes, max(s.outstanding_bytes_plus_minus) plus_minus, any_value(f.function)
    FROM samples s JOIN (SELECT DISTINCT stack_id, position, frame_id FROM read_parquet('tables/stacks/**/*.parquet')) t ON t.stack_id = s.stack_id AND t.position = 3
    JOIN (SELECT frame_id, max(function) function FROM read_parquet('tables/frames/**/*.parquet') GROUP BY 1) f ON f.frame_id = t.frame_id
    WHERE s.is_last = 1 GROUP BY s.service, s.stack_id ORDER BY bytes DESC LIMIT 10""")
PY
