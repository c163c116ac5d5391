#!/usr/bin/env python3
"""Programs that nobody here wrote, killed in control groups of little memory under one `heapr watch`
each: their first sentences, and whether these have the expected words. Needs root. HEAPR names the
program; PYTHON one with pandas. Programs that are not installed are left out, and told.

    benches/real_deaths.py FOLDER [NAME…]
"""
import json, os, pathlib, shutil, signal, subprocess, sys, time

HEAPR = os.environ.get("HEAPR", "heapr")
PYTHON = os.environ.get("PYTHON", "python3")
V1 = pathlib.Path("/sys/fs/cgroup/memory")
ROOT = V1 if V1.exists() else pathlib.Path("/sys/fs/cgroup")
LIMIT_FILE = "memory.limit_in_bytes" if V1.exists() else "memory.max"

PANDAS = """
import pandas as pd
frame = pd.DataFrame({"key": [1] * 20000, "value": range(20000)})
def join_orders():
    return frame.merge(frame, on="key")
print(len(join_orders()))
"""
TEMPLATES = """
#include <tuple>
#include <utility>
template <int N> struct Node { using left = Node<N - 1>; using all = std::tuple<Node<N - 1>, typename Node<N - 1>::left>; int value[N + 1]; };
template <> struct Node<0> { using left = Node<0>; int value[1]; };
template <std::size_t... I> auto make(std::index_sequence<I...>) { return std::make_tuple(Node<I % 900>()...); }
auto all = make(std::make_index_sequence<6000>());
"""
# Name, limit in MiB, command of sh, words of the first sentence (`|` separates equal ones).
PROGRAMS = [
    ("imagemagick", 96, "convert -size 3800x3800 plasma:fractal -blur 0x8 out.png", ["AcquirePixelCache|AcquireAlignedMemory|OpenPixelCache|ImageMagick|Magick|plasma"]),
    ("ffmpeg", 192, "ffmpeg -v error -f lavfi -i testsrc=size=1920x1080:rate=25 -t 60 -vf reverse -f null -", ["av_|libav|buffer|ff_"]),
    ("sqlite3", 96, "sqlite3 :memory: \"pragma temp_store=memory; create table t as with recursive n(i) as (select 1 union all select i+1 from n where i<9000000) select i, hex(randomblob(20)) h from n; select count(*) from t;\"", ["sqlite3|pcache"]),
    ("g++", 160, "g++ -std=c++17 -ftemplate-depth=2000 -c templates.cc -o /dev/null", ["cc1plus", "mapped by itself"]),
    ("pandas", 256, f"{PYTHON} merge.py", ["join_orders (merge.py"]),
    ("jq", 96, "jq -n '[range(100000000)] | length'", ["jv_|jq|stack_|jq_next"]),
    ("redis", 96, "redis-server --port 27901 --save '' --appendonly no", ["redis|dict|sds|zmalloc|createObject|lookup|sdsnewlen|createStringObject"]),
    ("memcached", 96, "memcached -u nobody -m 2048 -p 27902", ["memcached|slabs|do_slabs|memory_allocate"]),
    ("php", 96, "php -d memory_limit=-1 -r 'function remember($n) { global $kept; $kept[] = str_repeat(\"x\", 2000) . $n; } for ($n = 0; ; $n++) { remember($n); if ($n % 100 == 0) usleep(1000); }'", ["remember (|mapped by itself"]),
    ("perl", 96, "perl -e 'my @kept; sub remember { push @kept, \"x\" x 2000 . shift; } for (my $n = 0; ; $n++) { remember($n); select(undef, undef, undef, 0.002) if $n % 100 == 0 }'", ["main::remember|remember"]),
    ("postgres", 128, "chown -R nobody . && setpriv --reuid nobody --clear-groups sh -c 'initdb -D data -A trust -U postgres >/dev/null && exec postgres -D data -p 27903 -k $PWD -c work_mem=2GB -c shared_buffers=8MB -c max_parallel_workers_per_gather=0 -c jit=off'", ["postgres|palloc|AllocSet|tuplesort|ExecHash"]),
    ("tsc", 192, "node node_modules/typescript/bin/tsc --noEmit big.ts", ["V8|typescript|tsc|_tsc.js"]),
    ("lua", 96, "lua5.4 -e 'kept = {} function remember(n) kept[n] = string.rep(\"x\", 2000) .. n end n = 0 while true do n = n + 1 remember(n) if n % 500 == 0 then os.execute(\"true\") end end'", ["remember"]),
    ("sort", 96, "cat /dev/urandom | base64 -w 60 | sort -S 2G > /dev/null", ["sort"]),
    ("xz", 96, "head -c 300000000 /dev/urandom | xz -9e -T 4 > /dev/null", ["xz|lzma"]),
]
# What makes a server grow.
LOADS = {
    "redis": "redis-benchmark -p 27901 -q -n 400000 -r 1000000 -d 500 -t set",
    "memcached": "python3 -c \"import socket\ns = socket.create_connection(('127.0.0.1', 27902))\nfor n in range(200000):\n  s.sendall(b'set key%d 0 0 5000 noreply\\r\\n' % n + b'x' * 5000 + b'\\r\\n')\"",
    "postgres": "until psql -h {folder} -p 27903 -U postgres -c 'select 1'; do sleep 1; done; psql -h {folder} -p 27903 -U postgres -c \"select length(string_agg(md5(i::text), '')) from generate_series(1, 6000000) i\"",
}


def run(folder, name, limit_mib, command, wanted):
    own = folder / name
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    own.chmod(0o755)
    for program, file, text in [("pandas", "merge.py", PANDAS), ("g++", "templates.cc", TEMPLATES)]:
        if name == program:
            (own / file).write_text(text)
    if name == "tsc":
        if not (folder / "node_modules/typescript").exists():
            subprocess.run(["npm", "install", "--silent", "--prefix", folder, "typescript@5.4"], check=True)
        (own / "node_modules").symlink_to(folder / "node_modules")
        (own / "big.ts").write_text("".join(
            f"interface T{n} {{ a{n}: T{max(n - 1, 0)}; b: string; c: {{ [k: string]: T{n} }} }}\n"
            f"export function f{n}(x: T{n}): T{max(n - 1, 0)} {{ return {{ ...x, ...x.a{n} }}.a{n}; }}\n" for n in range(60000)))
    group = ROOT / f"heapr-real-{name}-{os.getpid()}"
    group.mkdir()
    (group / LIMIT_FILE).write_text(str(limit_mib << 20))
    environment = {**os.environ, "HEAPR_RUNTIME_DIR": str(folder / "runtime"), "HOME": str(folder)}
    (folder / "runtime").mkdir(mode=0o700, exist_ok=True)
    script = f"echo $$ > {group}/cgroup.procs; sleep 6; {command}"
    program = subprocess.Popen(["sh", "-c", script], cwd=own, stdout=subprocess.DEVNULL,
                               stderr=open(own / "stderr", "w"), start_new_session=True)
    time.sleep(1)
    incidents = folder / f"{name}.incidents"
    shutil.rmtree(incidents, ignore_errors=True)
    watch = subprocess.Popen([HEAPR, "watch", "--cgroup", f"/{group.name}", "-o", incidents],
                             env=environment, stdout=subprocess.DEVNULL, stderr=open(own / "said", "w"))
    load = None
    if name in LOADS:
        time.sleep(15)
        load = subprocess.Popen(["sh", "-c", LOADS[name].format(folder=own)], stdout=subprocess.DEVNULL,
                                stderr=open(own / "load", "w"), start_new_session=True)
    found, started = None, time.time()
    while found is None and time.time() - started < 120:
        time.sleep(0.5)
        for path in sorted(incidents.glob("incident-*.json")):
            try:
                one = json.loads(path.read_text())
            except (ValueError, OSError):
                continue
            if one["kind"] == "death":
                found = one
        if found is None and program.poll() is not None and time.time() - started > 20 and not load:
            time.sleep(3)
            if program.poll() is not None and not list(incidents.glob("incident-*.json")):
                break
    watch.send_signal(signal.SIGTERM)
    watch.wait()
    for one in [program, load]:
        if one:
            try:
                os.killpg(one.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            one.wait()
    for _ in range(50):
        for pid in (group / "cgroup.procs").read_text().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
        try:
            group.rmdir()
            break
        except OSError:
            pass
    sentence = found["sentences"][0] if found else "no incident: " + (own / "stderr").read_text()[-200:].replace("\n", " ")
    words = ["killed by the kernel", *wanted]
    is_right = bool(found) and all(any(word in sentence for word in each.split("|")) for each in words)
    print(f"| {name} | {limit_mib} MiB | {'right' if is_right else 'WRONG'} | {sentence.replace('|', chr(92) + '|')} |", flush=True)
    return is_right


def main():
    folder = pathlib.Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    chosen = [one for one in PROGRAMS if not sys.argv[2:] or one[0] in sys.argv[2:]]
    print("| program | limit | right | first sentence |\n|---|---:|---|---|")
    right = sum(run(folder, *one) for one in chosen)
    print(f"\n{right} of {len(chosen)} as expected")
    sys.exit(right != len(chosen))


main()
