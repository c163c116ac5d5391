#!/bin/sh
# Verdicts on leaks, verified: eight real programs at light work, a graph of each, and the number of
# blocks called leaked that are freed or reallocated afterwards.
# `benches/graph_confirm.sh [SECONDS] [FOLDER] [PROGRAM…]`; needs what `for_program` names. Prints a
# row for each program; ends with 1 if a definite leak was freed.
set -u
seconds=${1:-600}
folder=${2:-$(mktemp -d)}
[ $# -ge 2 ] && shift 2 || shift $#
[ $# -gt 0 ] || set -- redis python node clang nginx sqlite3 postgres gtk
heapr=${HEAPR:-heapr}
# Seconds before the graph, so that the program is at work.
warm_s=${WARM_S:-15}
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder" || exit 2
mkdir -p -m 700 run
export XDG_RUNTIME_DIR="$folder/run"
port=$((21000 + $$ % 9000))
started=
sessions=
stop_all() {
    for pid in $started; do kill "$pid" 2> /dev/null; done
    for name in $sessions; do "$heapr" stop -q "$name" > /dev/null 2>&1; done
    [ ! -f pg/postmaster.pid ] || kill -INT "$(head -1 pg/postmaster.pid)" 2> /dev/null
    [ ! -f ng/pid ] || kill "$(cat ng/pid)" 2> /dev/null
}
trap stop_all EXIT
# Starts a command in the background, to be ended with the script.
background() {
    "$@" &
    started="$started $!"
}
# Starts a program in a session of its name.
record() {
    name=$1
    shift
    "$heapr" start "$name" -f -o "$name.heapr" -- "$@" > "$name.out" 2>&1 && sessions="$sessions $name"
}

cat > work.py <<'PY'
import json, re, time, collections, decimal
cache, n = collections.OrderedDict(), 0
while True:
    n += 1
    cache[n] = json.loads(json.dumps({"n": n, "text": "x" * 2000, "list": list(range(50))}))
    if len(cache) > 3000: cache.popitem(last=False)
    re.sub("x+(%d)?" % n, "", "x" * 500)
    decimal.Decimal(n).sqrt()
    time.sleep(0.005)
PY
cat > work.js <<'JS'
const http = require('http'), zlib = require('zlib'), crypto = require('crypto')
const kept = new Map()
const server = http.createServer((request, response) => response.end(zlib.gzipSync(crypto.randomBytes(9000))))
server.listen(0, () => setInterval(() => http.get({ port: server.address().port }, answer => {
  const parts = []
  answer.on('data', part => parts.push(part)).on('end', () => {
    kept.set(kept.size % 500, Buffer.concat(parts))
    crypto.createHash('sha256').update(parts[0]).digest('hex')
  })
}), 30))
JS
# The compiler waits for each of these headers: each is a pipe that is written late.
slow_source() {
    number=0
    : > slow.cc
    for header in vector string map regex unordered_map memory functional sstream deque set list future \
        thread iostream algorithm random tuple variant optional any chrono complex valarray bitset; do
        number=$((number + 1))
        mkfifo slow$number.h
        echo "#include \"slow$number.h\"" >> slow.cc
        echo "#include <$header>" > text$number.h
        echo "namespace n$number { template<int N> struct F { static const int v = F<N-1>::v + 1; };" >> text$number.h
        echo "template<> struct F<0> { static const int v = 0; }; int f() { return F<500>::v; } }" >> text$number.h
    done
    (
        part=1
        while [ $part -le $number ]; do
            sleep $(((seconds + 2 * warm_s) / number + 1))
            cat text$part.h > slow$part.h
            part=$((part + 1))
        done
    ) &
    started="$started $!"
}
# Writes statements into a pipe; the arguments are SQL of a key and of a text of a hundred characters.
feed_sql() {
    number=0
    while sleep 0.3; do
        number=$((number + 1))
        echo "create table if not exists t(a $2, b text);"
        echo "insert into t(b) select $3 from generate_series(1, 50);"
        echo "select count(*), max(length(b)) from (select b, a from t order by b) as s;"
        echo "delete from t where a < $((number * 50 - 3000));"
    done > "$1"
}

# Starts a program at work and sets `pid`.
for_program() {
    case $1 in
    redis)
        record redis redis-server --port $port --save 60 1 --dir "$folder" --appendonly no
        sleep 2
        ( while sleep 2; do redis-benchmark -p $port -n 2000 -q -r 20000 -t set,lpush,lpop,hset,zadd; done > /dev/null 2>&1 ) &
        started="$started $!"
        find_pid=redis-server ;;
    python) record python python3 work.py; find_pid=work.py ;;
    node) record node node work.js; find_pid=work.js ;;
    clang) slow_source
        record clang clang++ -std=c++17 -O1 -g -c slow.cc -o slow.o; find_pid=slow.cc ;;
    nginx)
        mkdir -p ng/logs
        head -c 300000 /dev/urandom > ng/data
        echo "daemon off; worker_processes 1; pid $folder/ng/pid; error_log $folder/ng/log; events {} http {
            gzip on; gzip_types *; access_log $folder/ng/access;
            server { listen $((port + 1)); root $folder/ng; location /p { proxy_pass http://127.0.0.1:$((port + 1))/data; } } }" > ng/conf
        record nginx nginx -p "$folder/ng" -c "$folder/ng/conf"
        ( while sleep 0.2; do curl -s --compressed http://127.0.0.1:$((port + 1))/p > /dev/null; done ) &
        started="$started $!"
        find_pid="worker process" ;;
    sqlite3)
        mkfifo sql.in
        background feed_sql sql.in "integer primary key" "hex(randomblob(50))"
        record sqlite3 sh -c 'exec sqlite3 file.db < sql.in > sql.out'
        find_pid="sqlite3 file.db" ;;
    postgres)
        bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
        mkdir -p pg && chown postgres pg && chmod 711 "$folder"
        su postgres -c "$bin/initdb -D $folder/pg -A trust > /dev/null"
        # The server refuses to run as root, so that it runs as another user than heapr.
        background su postgres -c "$bin/postgres -D $folder/pg -p $((port + 2)) -k $folder/pg" > postgres.out 2>&1
        sleep 5
        mkfifo psql.in
        background feed_sql psql.in "serial primary key" "repeat(md5(random()::text), 3)"
        background sh -c "exec psql -q -h $folder/pg -p $((port + 2)) -U postgres < psql.in > psql.out 2>&1"
        find_pid="postgres: postgres" ;;
    gtk)
        background Xvfb :77 -screen 0 800x600x24 > /dev/null 2>&1
        sleep 2
        export DISPLAY=:77
        record gtk gtk3-demo --run=spinner
        find_pid=gtk3-demo ;;
    *) echo "$1 is none of the programs" >&2; exit 2 ;;
    esac
}

# Prints the newest process, except heapr's and shells, whose command line has these words.
pid_of() {
    ps -eo pid,args --sort=-start_time | grep -v -e "$heapr" -e grep -e "/bin/sh" -e " su " | grep -F -- "$1" | awk 'NR==1{print $1}'
}

for program in "$@"; do
    for_program "$program"
    sleep "$warm_s"
    pid=$(pid_of "$find_pid")
    if [ -z "$pid" ]; then echo "$program: not started" >&2; continue; fi
    started="$started $pid"
    case " $sessions " in
    *" $program "*) "$heapr" snapshot take --graph "$pid" > "$program.take" 2>&1 ;;
    # Programs that heapr did not start are attached to.
    *) "$heapr" snapshot take --graph --confirm "$seconds" -f -o "$program.heapr" "$pid" > "$program.take" 2>&1 &
        waits="${waits-} $!" ;;
    esac
done
sleep "$seconds"
for pid in ${waits-}; do wait "$pid"; done
for name in $sessions; do "$heapr" stop -q "$name" > "$name.stop" 2>&1; done

echo "| program | definite | possible | indirect | struck | of these definite |"
echo "|---|---:|---:|---:|---:|---:|"
worst=0
for program in "$@"; do
    "$heapr" snapshot leaks "$program.heapr" --format json > "$program.json" 2> "$program.error" || worst=2
    number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$program.json" | head -1; }
    struck=$(number struck_definite_count)
    echo "| $program | $(number definite_count) | $(number possible_count) | $(number indirect_count) | $(number struck_count) | $struck |"
    [ "${struck:-1}" = 0 ] || [ $worst -gt 1 ] || worst=1
done
exit $worst
