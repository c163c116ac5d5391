//! Attaching to programs at work and detaching, many times: none may crash, hang or go wrong, the pauses must be short, and
//! the program must be as fast afterwards as before.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// Rounds unless told otherwise.
const ROUNDS: u32 = 200;
/// How long a round records.
const RECORD_MS: u32 = 30;
/// How long the speed is measured, before and after.
const MEASURE: Duration = Duration::from_secs(4);

/// A program that prints a growing count of what it has done, one number a line.
struct Program {
    child: Child,
    /// The process to attach to.
    pid: u32,
    count: Arc<AtomicU64>,
    others: Vec<Child>,
}

impl Drop for Program {
    fn drop(&mut self) {
        for child in self.others.iter_mut().chain([&mut self.child]) {
            let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
        }
    }
}

const PYTHON: &str = "
n = 0
while True:
    kept = {i: str(i) * 3 for i in range(2000)}
    text = ''.join(sorted(kept.values()))
    if len(text) != 20670: raise SystemExit(1)
    n += 1
    if n % 20 == 0: print(n, flush=True)
";

const NODE: &str = "
const http = require('http');
let n = 0;
const server = http.createServer((request, response) => {
  const body = Buffer.alloc(20000, 'x');
  response.end(JSON.stringify({ at: request.url, bytes: body.length }));
}).listen(0, () => {
  const ask = (number) => http.get({ port: server.address().port, path: '/' + number, agent }, (answer) => {
    let text = '';
    answer.on('data', (part) => text += part);
    answer.on('end', () => {
      if (JSON.parse(text).at !== '/' + number) process.abort();
      if (++n % 100 === 0) console.log(n);
      ask(number + 1);
    });
  });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  for (let i = 0; i < 8; i++) ask(i * 1000000);
});
";

/// Runs as many rounds as are asked for on each program.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let rounds: u32 = match arguments {
        [] => ROUNDS,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of rounds"))?,
    };
    let only: Option<&str> = arguments.get(1).copied();
    crate::run(crate::cargo().args([
        "build",
        "--profile",
        "quick",
        "--quiet",
        "--package",
        "heapr-session",
        "--example",
        "attach_soak",
    ]))?;
    let attacher = crate::check_agent::target_folder()?.join("quick/examples/attach_soak");
    println!(
        "| program | rounds | pause attach median / worst ms | detach | busy | events | speed after / before |"
    );
    println!("|---|---|---|---|---|---|---|");
    for name in ["redis", "python", "node", "threads", "forks", "plugins"] {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let program = start(name)?;
        println!("{}", measure(name, program, &attacher, rounds)?);
    }
    Ok(())
}

fn speed(program: &Program) -> f64 {
    let (begin, first) = (Instant::now(), program.count.load(Relaxed));
    std::thread::sleep(MEASURE);
    (program.count.load(Relaxed) - first) as f64 / begin.elapsed().as_secs_f64()
}

fn measure(name: &str, mut program: Program, attacher: &Path, rounds: u32) -> anyhow::Result<String> {
    std::thread::sleep(Duration::from_secs(1));
    let before = speed(&program);
    ensure!(before > 0.0, "{name} does nothing");
    let (pid, record_ms) = (program.pid.to_string(), RECORD_MS.to_string());
    let line = crate::output_of(Command::new(attacher).args([&pid, &rounds.to_string(), &record_ms]))?;
    let after = speed(&program);
    if let Some(status) = program.child.try_wait()? {
        bail!("{name} has ended: {status}");
    }
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [_, median, worst, detach_median, detach_worst, bytes_left, events, busy, _tries] =
        numbers.as_slice()
    else {
        bail!("{name}: {line}");
    };
    ensure!(*bytes_left == 0.0, "{name}: {bytes_left} bytes of the agent were left");
    Ok(format!(
        "| {name} | {rounds} | {:.1} / {:.1} | {:.1} / {:.1} | {busy} | {events} | {:.3} |",
        median / 1e3,
        worst / 1e3,
        detach_median / 1e3,
        detach_worst / 1e3,
        after / before
    ))
}

fn start(name: &str) -> anyhow::Result<Program> {
    let mut others = Vec::new();
    let mut command = match name {
        "python" => {
            let mut command = Command::new("/usr/bin/python3");
            command.args(["-c", PYTHON]);
            command
        }
        "node" => {
            let mut command = Command::new("node");
            command.args(["-e", NODE]);
            command
        }
        "redis" => {
            let port = "7399";
            let mut server = Command::new("redis-server");
            server.args(["--port", port, "--save", "", "--appendonly", "no"]).stdout(Stdio::null());
            let server = server.process_group(0).spawn().context("redis-server")?;
            let pid = server.id();
            others.push(server);
            std::thread::sleep(Duration::from_secs(1));
            let mut load = Command::new("redis-benchmark");
            load.args(["-p", port, "-l", "-q", "-t", "set,lpush,hset", "-d", "200", "-r", "10000"]);
            load.stdout(Stdio::null()).stderr(Stdio::null());
            others.push(load.process_group(0).spawn().context("redis-benchmark")?);
            let mut count = Command::new("sh");
            let ask = format!(
                "redis-cli -p {port} info stats | sed -n 's/^total_commands_processed:\\([0-9]*\\).*/\\1/p'"
            );
            count.args(["-c", &format!("while {ask}; do sleep 0.1; done")]);
            return watch(count, others, Some(pid));
        }
        _ => Command::new(victim(name)?),
    };
    command.stderr(Stdio::inherit());
    watch(command, others, None)
}

fn watch(mut command: Command, others: Vec<Child>, pid: Option<u32>) -> anyhow::Result<Program> {
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().context("starting a program")?;
    let output = child.stdout.take().context("no output")?;
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    // The threads' program prints what it did since the last line; the others what they did in all.
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(done) = line.strip_prefix('+').and_then(|done| done.parse().ok()) {
                counted.fetch_add(done, Relaxed);
            } else if let Ok(done) = line.trim().parse() {
                counted.store(done, Relaxed);
            }
        }
    });
    Ok(Program { pid: pid.unwrap_or(child.id()), child, count, others })
}

/// Builds one of the programs of the attach tests.
fn victim(name: &str) -> anyhow::Result<PathBuf> {
    let source = crate::root().join(format!("crates/session/tests/attach/victims/{name}.c"));
    let output = std::env::temp_dir().join(format!("heapr-soak-{name}"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-D_GNU_SOURCE", "-pthread", "-w"]).arg(&source).args(["-ldl", "-o"]).arg(&output);
    crate::run(&mut gcc)?;
    Ok(output)
}
