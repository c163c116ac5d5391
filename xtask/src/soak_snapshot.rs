//! Runs a session in snapshot mode on a server with a flat heap, for a given time: the recorder's
//! memory must be flat, too.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Default number of minutes.
const MINUTES: u64 = 60;
/// Requests per second: a server in use, on a machine that has other load too.
const RATE: u64 = 400;
/// Interval between two snapshots in seconds.
const SNAPSHOT_SECONDS: &str = "60";
const PORT: u16 = 7411;
const SAMPLE: Duration = Duration::from_secs(30);
/// Time after which the server's heap is at rest, and the recorder has seen it.
const WARM_UP: Duration = Duration::from_secs(60);

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs for the given minutes, and prints a line for each sample.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let minutes = match arguments {
        [] => MINUTES,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of minutes"))?,
    };
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p", "heapr"]))?;
    let heapr = crate::check_agent::target_folder()?.join("release/heapr");
    let folder = tempfile::tempdir()?;
    let heapr = |arguments: &[&str]| {
        let mut command = Command::new(&heapr);
        command
            .args(arguments)
            .env("HEAPR_RUNTIME_DIR", folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .current_dir(folder.path());
        command
    };
    let mut server = Command::new("redis-server");
    server.args(["--port", &PORT.to_string(), "--save", "", "--appendonly", "no"]).stdout(Stdio::null());
    let server = Server(server.process_group(0).spawn().context("redis-server")?);
    std::thread::sleep(Duration::from_secs(1));
    let mut load = Load::new()?;
    load.run_for(WARM_UP)?;
    let pid = server.0.id().to_string();
    crate::run(&mut heapr(&[
        "start",
        "long",
        "-q",
        "-o",
        "long.heapr",
        "--mode",
        "snapshot",
        "--pid",
        &pid,
    ]))?;
    crate::run(&mut heapr(&["snapshot", "every", SNAPSHOT_SECONDS, &pid]))?;
    let status = crate::output_of(&mut heapr(&["status", "long", "--format", "json"]))?;
    let status: serde_json::Value = serde_json::from_str(&status)?;
    let recorder = status.pointer("/sessions/0/recorder_pid").and_then(serde_json::Value::as_u64);
    let recorder = recorder.context("the session does not say who records")?;
    println!("| minute | recorder RSS KB | of it anonymous KB | server RSS KB |\n|---|---|---|---|");
    let begin = Instant::now();
    let mut anonymous = Vec::new();
    while begin.elapsed() < Duration::from_secs(minutes * 60) {
        load.run_for(SAMPLE)?;
        let own_kib = (kib(recorder, "VmRSS")?, kib(recorder, "RssAnon")?);
        anonymous.push(own_kib.1);
        let minute = begin.elapsed().as_secs_f64() / 60.0;
        println!(
            "| {minute:.1} | {} | {} | {} |",
            own_kib.0,
            own_kib.1,
            kib(u64::from(server.0.id()), "VmRSS")?
        );
    }
    crate::run(&mut heapr(&["stop", "long", "-q"]))?;
    // During the first third the recorder still grows into its tables.
    let (early, late) = (anonymous[anonymous.len() / 3], anonymous[anonymous.len() - 1]);
    println!("anonymous memory after a third of the time {early} KB, at the end {late} KB");
    ensure!(late <= early + early / 10 + 1024, "the recorder's memory grows");
    Ok(())
}

fn kib(pid: u64, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("it has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0))
}

/// Client with requests that set, replace and delete values of all sizes among a fixed number of
/// keys.
struct Load {
    server: TcpStream,
    state: u64,
}

impl Load {
    fn new() -> anyhow::Result<Self> {
        let server = TcpStream::connect(("127.0.0.1", PORT))?;
        server.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { server, state: 88_172_645_463_325_252 })
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    fn run_for(&mut self, time: Duration) -> anyhow::Result<()> {
        const BATCHES_PER_SECOND: u64 = 20;
        let begin = Instant::now();
        let mut batch_count = 0;
        while begin.elapsed() < time {
            let count = RATE / BATCHES_PER_SECOND;
            let mut batch = String::new();
            for _ in 0..count {
                let key = self.below(20_000);
                let value = "x".repeat(20 + self.below(400) as usize);
                match self.below(10) {
                    0 => batch.push_str(&format!("DEL k{key}\r\n")),
                    1 | 2 => batch.push_str(&format!("HSET h{} f{} {value}\r\n", key % 500, key % 100)),
                    _ => batch.push_str(&format!("SET k{key} {value}\r\n")),
                }
            }
            self.server.write_all(batch.as_bytes())?;
            let mut lines_left = count as usize;
            let mut answer = [0; 4096];
            while lines_left > 0 {
                let bytes = self.server.read(&mut answer)?;
                ensure!(bytes > 0, "the server has ended");
                lines_left =
                    lines_left.saturating_sub(answer[..bytes].iter().filter(|&&byte| byte == b'\n').count());
            }
            batch_count += 1;
            let due = begin + Duration::from_secs(batch_count) / BATCHES_PER_SECOND as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}
