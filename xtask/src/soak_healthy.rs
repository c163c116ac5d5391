//! Servers at constant load near 80 % of their limits: a watch of them must find nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::memory_group::{MemoryGroup, Trial};

/// Default time in minutes.
const MINUTES: u64 = 15;
/// Time without growth by a thirtieth that ends the load before the limits are set, and the longest
/// such load. V8's old generation rests for minutes before it grows once more.
const STEADY: Duration = Duration::from_secs(300);
const WARM_UP_MAX: Duration = Duration::from_secs(1800);
/// Time in which the watch has attached to all.
const SETTLED: Duration = Duration::from_secs(10);
/// Share of its limit that the most of a server's memory has then, in hundredths: a garbage
/// collector lets memory rise and fall.
const PERCENT: u64 = 80;
/// Least memory that a server has left.
const LEFT_BYTES_MIN: u64 = 4 << 20;
/// First limit, which no server meets.
const FIRST_LIMIT_MIB: u64 = 2048;

/// Server with its load, as lines of sh. Caches with a size of their own are filled first
/// (PostgreSQL's shared buffers, Node's orders). Until then memory grows, and a warning is right.
/// A client of redis may come to wait for itself without end: it gets a minute.
/// `$PORT`, `$PYTHON` (with FastAPI), `$FOLDER` and `$BENCHES` are set; `$CLIENT` is a client of
/// HTTP or of lines.
const SERVERS: [(&str, &str, &str); 6] = [
    (
        "redis",
        "exec redis-server --port $PORT --save '' --appendonly no",
        "until timeout 60 redis-benchmark -p $PORT -q -n 100000 -r 20000 -d 1000 -t set; do sleep 1; done
         while :; do timeout 60 redis-benchmark -p $PORT -q -n 2000 -c 4 -r 20000 -d 1000 -t set,get,lpush,lpop; sleep 1; done",
    ),
    (
        "nginx",
        "exec nginx -p $FOLDER -e error.log -g 'daemon off; worker_processes 2;' -c $FOLDER/nginx.conf",
        "exec $CLIENT $PORT /index.html",
    ),
    (
        "postgres",
        "if [ $(id -u) = 0 ]; then chown -R nobody $FOLDER; su='setpriv --reuid nobody --clear-groups'; fi; cd $FOLDER
         $su initdb -D $FOLDER/data -A trust -U postgres
         exec $su postgres -D $FOLDER/data -p $PORT -k $FOLDER -c shared_buffers=64MB",
        "until pgbench -h $FOLDER -p $PORT -U postgres -i -s 6 postgres; do sleep 2; done
         pgbench -h $FOLDER -p $PORT -U postgres -c 2 -S -t 50000 postgres
         while :; do pgbench -h $FOLDER -p $PORT -U postgres -c 4 -T 600 -R 60 postgres; sleep 1; done",
    ),
    (
        "fastapi",
        "cd $FOLDER; exec $PYTHON -m uvicorn --log-level error --port $PORT app:app",
        "exec $CLIENT $PORT /orders/7",
    ),
    (
        "node",
        "cd $FOLDER; exec node --max-old-space-size=40 --max-semi-space-size=2 app.js $PORT",
        "exec $CLIENT $PORT /",
    ),
    (
        "java",
        "cd $FOLDER; javac -d . $BENCHES/SoakServer.java; exec java -Xms64m -Xmx64m -XX:MaxDirectMemorySize=32m -cp . SoakServer $PORT",
        "exec $CLIENT $PORT lines",
    ),
];

const FASTAPI: &str = "from fastapi import FastAPI\napp = FastAPI()\n\n@app.get('/orders/{number}')\n\
    def order(number: int):\n    return {'number': number, 'items': [{'name': f'item {k}'} for k in range(50)]}\n";
const NODE: &str = "const cache = new Map(); let count = 0;\n\
    const remember = url => cache.set(count++ % 5000, { url, body: Buffer.alloc(2000, 'x').toString() + count });\n\
    while (count < 5000) remember('/');\n\
    require('http').createServer((request, answer) => {\n\
      remember(request.url);\n\
      answer.end(JSON.stringify([...Array(200).keys()].map(number => ({ number, name: `item ${number}` }))));\n\
    }).listen(process.argv[2]);\n";
/// Client that asks some dozen times a second, by HTTP or by lines.
const CLIENT: &str = r#"import http.client, socket, sys, time
port, path = int(sys.argv[1]), sys.argv[2]
while True:
    try:
        if path == "lines":
            file = socket.create_connection(("127.0.0.1", port), 20).makefile("rw")
        else:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        while True:
            if path == "lines":
                file.write("7\n")
                file.flush()
                file.readline()
            else:
                connection.request("GET", path)
                connection.getresponse().read()
            time.sleep(0.03)
    except OSError:
        time.sleep(0.5)
"#;

/// Server in its group, and its client.
struct Running {
    name: &'static str,
    group: MemoryGroup,
    server: Child,
    client: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both have a process group of their own.
        for child in [&mut self.client, &mut self.server] {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
        }
    }
}

/// Word for the same load without a watch: what dies there has too small a limit.
const BARE: &str = "bare";

/// Runs all servers at once for so many minutes.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let minutes = match arguments {
        [] => MINUTES,
        [minutes, ..] => minutes.parse().with_context(|| format!("{minutes} is no number of minutes"))?,
    };
    let is_bare = arguments.get(1) == Some(&BARE);
    let names = arguments.get(1 + usize::from(is_bare)..).unwrap_or_default();
    let trial = Trial::new()?;
    let chosen =
        SERVERS.iter().enumerate().filter(|(_, server)| names.is_empty() || names.contains(&server.0));
    let running: Vec<Running> =
        chosen.map(|(number, server)| start(number, server)).collect::<Result<_, _>>()?;
    let most = wait_until_steady(&running);
    // The memory that the watch takes in the servers counts against their limits.
    let words: Vec<&str> = running.iter().flat_map(|one| ["--cgroup", one.group.path.as_str()]).collect();
    let watch = (!is_bare).then(|| trial.watch(&words)).transpose()?;
    std::thread::sleep(SETTLED);
    for (one, most) in running.iter().zip(most) {
        let held = one.group.held_bytes().max(most);
        ensure!(held > 0 && one.group.process_count() > 0, "{} does not run", one.name);
        // A program of two MiB would have half a MiB left, less than a connection more takes.
        let limit = (held * 100 / PERCENT).max(held + LEFT_BYTES_MIN);
        one.group.limit(limit)?;
        println!(
            "{}: {} of {} MiB, {} processes",
            one.name,
            held >> 20,
            limit >> 20,
            one.group.process_count()
        );
    }
    let spent = || watch.as_ref().map_or(0, |watch| ticks(watch.id()));
    let (started, before) = (Instant::now(), spent());
    let mut dead = None;
    while dead.is_none() && started.elapsed() < Duration::from_secs(minutes * 60) {
        std::thread::sleep(Duration::from_secs(20));
        let is_dead = |one: &&Running| one.group.process_count() == 0 || one.group.kill_count() > 0;
        dead = running.iter().find(is_dead).map(|one| one.name);
    }
    let spent = spent().saturating_sub(before);
    for one in &running {
        println!("{}: {} MiB at the end", one.name, one.group.held_bytes() >> 20);
    }
    let has_died = || dead.map_or_else(String::new, |name| format!("{name} has died; "));
    let Some(watch) = watch else {
        ensure!(dead.is_none(), "{}it has too small a limit", has_died());
        println!("{} servers live after {minutes} minutes without a watch", running.len());
        return Ok(());
    };
    let percent = spent as f64 / started.elapsed().as_secs_f64().max(1.0);
    println!("the watcher used {percent:.2} % of a processor");
    watch.end()?;
    let found = trial.incidents()?;
    for incident in &found {
        println!("  {}: {}", incident["kind"], incident["sentences"][0]);
    }
    println!("{} incidents of {} servers in {minutes} minutes", found.len(), running.len());
    ensure!(found.is_empty() && dead.is_none(), "{}{} incidents of healthy servers", has_died(), found.len());
    Ok(())
}

/// Waits until all servers have the memory of constant load, and returns the most of each.
fn wait_until_steady(running: &[Running]) -> Vec<u64> {
    let started = Instant::now();
    let (mut most, mut steady) = (vec![0; running.len()], vec![0; running.len()]);
    let mut grown = started;
    while grown.elapsed() < STEADY && started.elapsed() < WARM_UP_MAX {
        std::thread::sleep(Duration::from_secs(1));
        for ((one, most), steady) in running.iter().zip(&mut most).zip(&mut steady) {
            let held = one.group.held_bytes();
            *most = held.max(*most);
            if held > *steady + *steady / 30 {
                (*steady, grown) = (held, Instant::now());
            }
        }
    }
    most
}

fn start(number: usize, server: &(&'static str, &str, &str)) -> anyhow::Result<Running> {
    let (name, program, load) = *server;
    let folder = std::env::temp_dir().join(format!("heapr-healthy-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let port = 21_000 + std::process::id() % 1000 * 10 + number as u32;
    let python = std::env::var("HEAPR_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for (file, text) in [("app.py", FASTAPI), ("app.js", NODE), ("client.py", CLIENT)] {
        fs::write(folder.join(file), text)?;
    }
    fs::write(folder.join("index.html"), "x".repeat(20_000))?;
    let root = folder.display();
    fs::write(
        folder.join("nginx.conf"),
        format!(
            "pid {root}/nginx.pid;\nevents {{}}\nhttp {{ access_log off; client_body_temp_path {root}; proxy_temp_path {root};\n\
             fastcgi_temp_path {root}; uwsgi_temp_path {root}; scgi_temp_path {root};\n\
             server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
        ),
    )?;
    let client = format!("{python} {root}/client.py");
    let variables = [
        ("PORT", port.to_string()),
        ("PYTHON", python),
        ("FOLDER", root.to_string()),
        ("BENCHES", crate::root().join("benches").to_string_lossy().into_owned()),
        ("CLIENT", client),
    ];
    let group = MemoryGroup::new(&format!("healthy-{name}"), None, Some(FIRST_LIMIT_MIB))?;
    let words = ["sh", "-c", program].map(str::to_owned);
    let server = group.command(&words, Path::new("/")).envs(variables.clone()).spawn()?;
    let mut client = Command::new("sh");
    client
        .args(["-c", load])
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut client, 0);
    Ok(Running { name, group, server, client: client.spawn()? })
}

/// Processor time of a process in clock ticks, of which a second has a hundred.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
    let facts = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let number =
        |place: usize| facts.split(' ').nth(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    number(11) + number(12)
}
