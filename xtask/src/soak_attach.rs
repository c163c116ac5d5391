//! Attaches to working programs and detaches from them, many times. No program may crash, hang or
//! fail, the pauses must be short, and the programs must be as fast afterwards as before.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::soak_servers::{self, SERVERS, only_child};

/// Default number of rounds.
const ROUNDS: u32 = 200;
/// Milliseconds that a round records.
const RECORD_MS: u32 = 30;
/// Mean period of samples in bytes: small, so that there are many samples.
const SAMPLE_MEAN_BYTES: u64 = 64 << 10;
/// Time for which the speed is measured, before and after.
const MEASURE: Duration = Duration::from_secs(4);
/// Longest time until a program works.
const START_MAX: Duration = Duration::from_secs(120);

/// Program that prints a growing count of its work, one number per line.
pub(crate) struct Program {
    child: Child,
    /// Process to attach to.
    pub(crate) pid: u32,
    /// Work done so far, and the time of the last report.
    count: Arc<Mutex<(u64, Instant)>>,
    others: Vec<Child>,
}

impl Program {
    /// Waits for the first work, which takes a while on a busy machine.
    fn wait_until_at_work(&self) {
        let limit = Instant::now() + START_MAX;
        let has_done = || self.count.lock().is_ok_and(|count| count.0 > 0);
        while !has_done() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the work per second, between the first and the last line that is printed in `time`.
    pub(crate) fn speed(&self, time: Duration) -> f64 {
        let read = || self.count.lock().map(|count| *count).unwrap_or((0, Instant::now()));
        let limit = Instant::now() + time * 15;
        let (old, begin) = (read(), Instant::now());
        let fresh = |before: (u64, Instant)| {
            while read().1 == before.1 && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(1));
            }
            read()
        };
        let first = fresh(old);
        std::thread::sleep(time.saturating_sub(begin.elapsed()));
        let last = fresh(read());
        let seconds = (last.1 - first.1).as_secs_f64();
        if seconds > 0.0 { (last.0 - first.0) as f64 / seconds } else { 0.0 }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Clients first: they would report that the server is gone.
        for child in [&mut self.child].into_iter().chain(&mut self.others) {
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
});
// On a busy machine it would close what its client is about to use.
server.keepAliveTimeout = 0;
server.listen(0, () => {
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

/// Runs the requested number of rounds on each program. `--sample`: allocations are sampled.
/// `ATTACH_SOAK` names a build of the attaching example to use instead of a new one.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let is_sampled = arguments.contains(&"--sample");
    let arguments: Vec<&str> = arguments.iter().copied().filter(|&word| word != "--sample").collect();
    let rounds: u32 = match arguments.as_slice() {
        [] => ROUNDS,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of rounds"))?,
    };
    let only = arguments.get(1..).unwrap_or_default();
    let attacher = match std::env::var_os("ATTACH_SOAK") {
        Some(attacher) => PathBuf::from(attacher),
        None => build_attacher()?,
    };
    println!(
        "Pauses in ms: median / worst. Parts of an attach's median: stop, settle, heap, install, resume. Wrong: frees of \
         unknown blocks, blocks given out twice, events lost or not understood.\n"
    );
    println!(
        "| program | threads, modules | rounds | attach | parts | stops | detach | busy | unread | events | wrong | speed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut failures = Vec::new();
    for name in PROGRAMS.into_iter().chain(SERVERS) {
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        match start(name, &[]).and_then(|program| measure(name, program, &attacher, rounds, is_sampled)) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                println!("| {name} | failed |");
                eprintln!("{name}: {error:#}");
                failures.push(format!("{name}: {error:#}"));
            }
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Builds the attaching process.
fn build_attacher() -> anyhow::Result<PathBuf> {
    let words = ["build", "--release", "--quiet", "--package", "heapr-session", "--example", "attach_soak"];
    crate::run(crate::cargo().args(words))?;
    Ok(crate::check_agent::target_folder()?.join("release/examples/attach_soak"))
}

const PROGRAMS: [&str; 7] = ["redis", "python", "node", "threads", "forks", "plugins", "modules"];

fn measure(
    name: &str,
    mut program: Program,
    attacher: &Path,
    rounds: u32,
    is_sampled: bool,
) -> anyhow::Result<String> {
    program.wait_until_at_work();
    let before = program.speed(MEASURE);
    ensure!(before > 0.0, "{name} does nothing");
    // A round takes well under a second on an idle machine; a hanging target must not make this
    // process hang.
    let limit_s = 60 + rounds * 10;
    let mut soak = Command::new("timeout");
    soak.args(["--signal=KILL", &limit_s.to_string()]).arg(attacher);
    soak.args([&program.pid.to_string(), &rounds.to_string(), &RECORD_MS.to_string()]);
    if is_sampled {
        soak.arg(SAMPLE_MEAN_BYTES.to_string());
    }
    // Remarks of the process are shown.
    soak.stderr(Stdio::inherit());
    let line = crate::output_of(&mut soak)?;
    let after = program.speed(MEASURE);
    if let Some(status) = program.child.try_wait()? {
        bail!("{name} has ended: {status}");
    }
    let report: Value = serde_json::from_str(&line).with_context(|| format!("{name}: {line}"))?;
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let ms = |path: &str, which: usize| number(&format!("{path}/{which}")) / 1e3;
    let parts = ["stop", "settle", "read_heap", "install", "resume"];
    let parts = parts.map(|part| format!("{:.1}", ms(&format!("/attach/{part}_us"), 0))).join(" ");
    // Blocks that a language's own allocator held before are unknown.
    let wrong = ["/frees_unmatched", "/frees_implied", "/lost_or_invalid"].map(number);
    let of_other_heaps = number("/frees_unmatched_elsewhere");
    // In a heap that was read at rest everything is known.
    let is_all_known = number("/heap_unread") == 0.0 && number("/allocator_busy") == 0.0;
    ensure!(
        !is_all_known || wrong == [0.0; 3],
        "{name}: {wrong:?} frees of unknown blocks, only implied, lost"
    );
    let wrong = wrong.map(|count| count.to_string()).join(", ");
    ensure!(after > 0.0, "{name} does nothing any more");
    ensure!(number("/bytes_left") == 0.0, "{name}: {} bytes of the agent were left", number("/bytes_left"));
    Ok(format!(
        "| {name} | {}, {} | {rounds} | {:.1} / {:.1} | {parts} | {:.1} | {:.1} / {:.1} | {} | {} | {} | {} | {:.3} |",
        number("/threads"),
        number("/modules"),
        ms("/attach/pause_us", 0),
        ms("/attach/pause_us", 1),
        number("/attach/tries_mean"),
        ms("/detach/pause_us", 0),
        ms("/detach/pause_us", 1),
        number("/allocator_busy"),
        number("/heap_unread"),
        number("/events"),
        // Heaps of other allocators are not read: their earlier blocks are unknown.
        match (number("/heap_unread") > 0.0, of_other_heaps > 0.0) {
            (true, _) => "heap unread".to_owned(),
            (_, true) => format!("{wrong}; {of_other_heaps} of other heaps"),
            _ => wrong,
        },
        after / before
    ))
}

/// Starts a program. `wrapper`: command that starts the program in its place.
pub(crate) fn start(name: &str, wrapper: &[&str]) -> anyhow::Result<Program> {
    let mut others = Vec::new();
    let mut command = match name {
        "python" => {
            // The interpreter itself, because a script that searches for it would exec it later.
            let real =
                crate::output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
            let mut command = Command::new(real.trim());
            command.args(["-c", PYTHON]);
            command
        }
        "node" => {
            let mut command = Command::new("node");
            command.args(["-e", NODE]);
            command
        }
        "redis" => {
            let port = &next_port().to_string();
            let mut server = wrapped(wrapper, Path::new("redis-server"));
            server.args(["--port", port, "--save", "", "--appendonly", "no"]).stdout(Stdio::null());
            let server = server.process_group(0).spawn().context("redis-server")?;
            std::thread::sleep(Duration::from_secs(1));
            let pid = if wrapper.is_empty() { server.id() } else { only_child(server.id())? };
            others.push(server);
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
        name if SERVERS.contains(&name) => {
            let server = soak_servers::start(name, next_port())?;
            others.push(server.child);
            return watch(server.client, others, Some(server.pid));
        }
        "modules" => {
            let mut command = Command::new(victim(name)?);
            command.arg(modules()?);
            command
        }
        "thread" => {
            let mut command = wrapped(wrapper, &victim("threads")?);
            command.arg("1");
            command
        }
        _ => Command::new(victim(name)?),
    };
    command.stderr(Stdio::inherit());
    let mut program = watch(command, others, None)?;
    if !wrapper.is_empty() {
        std::thread::sleep(Duration::from_secs(1));
        program.pid = only_child(program.pid)?;
    }
    Ok(program)
}

static PORTS_TAKEN: AtomicU32 = AtomicU32::new(0);

/// Returns a port that no other soak uses.
fn next_port() -> u32 {
    7420 + std::process::id() % 20_000 + PORTS_TAKEN.fetch_add(1, Relaxed)
}

fn wrapped(wrapper: &[&str], program: &Path) -> Command {
    match wrapper {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}

fn watch(mut command: Command, others: Vec<Child>, pid: Option<u32>) -> anyhow::Result<Program> {
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().context("starting a program")?;
    let output = child.stdout.take().context("no output")?;
    let count = Arc::new(Mutex::new((0, Instant::now())));
    let counted = Arc::clone(&count);
    // The program `threads` prints its work since the last line; the others print their total.
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Ok(mut counted) = counted.lock() else { return };
            if let Some(done) = line.strip_prefix('+').and_then(|done| done.parse::<u64>().ok()) {
                *counted = (counted.0 + done, Instant::now());
            } else if let Ok(done) = line.trim().parse::<u64>() {
                *counted = (done.max(counted.0), Instant::now());
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

/// Builds 200 small libraries. Returns their folder.
fn modules() -> anyhow::Result<PathBuf> {
    let folder = std::env::temp_dir().join("heapr-soak-libraries");
    std::fs::create_dir_all(&folder)?;
    let library = folder.join("lib0.so");
    let mut gcc = Command::new("gcc");
    let source = crate::root().join("crates/session/tests/attach/victims/module.c");
    crate::run(gcc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source))?;
    // The loader distinguishes them by their files.
    for number in 1..200 {
        std::fs::copy(&library, folder.join(format!("lib{number}.so")))?;
    }
    Ok(folder)
}
