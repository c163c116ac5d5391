//! Measures snapshots of ten million live blocks: their duration, their cost for the running
//! program, and the recorder's memory.
//!
//! The baseline is the same program in the same session before the first snapshot: its delays
//! without a snapshot.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::table::markdown;

const BLOCKS: u64 = 10_000_000;
/// Number of snapshots in each case.
const ROUNDS: usize = 5;
/// Number of tenths of a second that are read before the first snapshot.
const FLOOR_LINES: usize = 20;
/// Pause between two snapshots.
const REST: Duration = Duration::from_secs(1);
/// Bytes of a block, and pairs of malloc and free per second; 0: as many as the program can make.
const CASES: [(u64, u64); 4] = [(48, 100_000), (48, 0), (1000, 100_000), (1000, 0)];

/// Result of a case.
struct Measured {
    times: Vec<Duration>,
    /// Tenths while snapshots were taken.
    during: Vec<Tenth>,
    /// Tenths before the first snapshot.
    floor: Vec<Tenth>,
    /// Peak of the recorder's resident set.
    peak_bytes: u64,
}

/// Report of the program on a tenth of a second.
struct Tenth {
    worst_gap_ns: u64,
    pairs: u64,
}

pub(crate) fn run() -> anyhow::Result<String> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p", "heapr"]))?;
    let heapr = crate::check_agent::target_folder()?.join("release/heapr");
    let program = super::inputs::folder()?.join("live_blocks");
    let source = crate::root().join("benches/live_blocks.c");
    crate::run(Command::new("gcc").args(["-O1", "-g", "-fno-builtin", "-o"]).arg(&program).arg(source))?;
    let rows: Vec<Vec<String>> =
        CASES.iter().map(|&case| measure(&heapr, &program, case)).collect::<anyhow::Result<_>>()?;
    let heading = [
        "bytes, pairs/s",
        "snapshot s",
        "slowest",
        "worst gap ms",
        "without one",
        "pairs/s meanwhile",
        "recorder B a block",
    ];
    Ok(format!(
        "## Snapshots of live heaps\n\n{BLOCKS} live blocks, a session in snapshot mode; median and slowest of {ROUNDS} `heapr snapshot take`; \
         the program's longest wait while they are taken and before; the recorder's highest resident set.\n\n{}",
        markdown(&heading, &rows)
    ))
}

fn measure(heapr: &Path, program: &Path, (block_bytes, rate): (u64, u64)) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let heapr = |arguments: &[&str]| {
        let mut command = Command::new(heapr);
        command
            .args(arguments)
            .env("HEAPR_RUNTIME_DIR", folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .current_dir(folder.path());
        command
    };
    // The program outlives the command that starts it, and writes into that command's pipe.
    let mut start = heapr(&["start", "live", "-q", "-o", "live.heapr", "--mode", "snapshot", "--"]);
    start.arg(program).args([block_bytes.to_string(), rate.to_string()]).stdout(Stdio::piped());
    let mut start = start.spawn()?;
    let output = start.stdout.take().context("no output")?;
    ensure!(start.wait()?.success(), "heapr start failed");
    let outcome = snapshots(&heapr, output);
    let ended = crate::run(&mut heapr(&["cancel", "live"]));
    let Measured { mut times, during, floor, peak_bytes } = outcome?;
    ended?;
    times.sort();
    let gap =
        |tenths: &[Tenth]| tenths.iter().map(|tenth| tenth.worst_gap_ns).max().unwrap_or(0) as f64 / 1e6;
    let pairs: u64 = during.iter().map(|tenth| tenth.pairs).sum();
    let speed = if rate == 0 { "as many as it can".to_owned() } else { rate.to_string() };
    Ok(vec![
        format!("{block_bytes}, {speed}"),
        format!("{:.2}", times[times.len() / 2].as_secs_f64()),
        format!("{:.2}", times[times.len() - 1].as_secs_f64()),
        format!("{:.1}", gap(&during)),
        format!("{:.1}", gap(&floor)),
        format!("{:.0}", pairs as f64 * 10.0 / during.len().max(1) as f64),
        format!("{:.1}", peak_bytes as f64 / BLOCKS as f64),
    ])
}

/// Takes the snapshots and reads the program's output.
fn snapshots(heapr: &impl Fn(&[&str]) -> Command, output: ChildStdout) -> anyhow::Result<Measured> {
    let status = crate::output_of(&mut heapr(&["status", "live", "--format", "json"]))?;
    let status: serde_json::Value = serde_json::from_str(&status)?;
    let number =
        |path: &str| status.pointer(path).and_then(serde_json::Value::as_u64).context("no such session");
    let recorder = number("/sessions/0/recorder_pid")?;
    let pid = number("/sessions/0/processes/0/pid")?;
    let _end = EndOf(pid);
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send((Instant::now(), line));
        }
    });
    while lines.recv()?.1 != "full" {}
    let mut floor = Vec::new();
    // The recorder catches up with ten million events first.
    for _ in 0..FLOOR_LINES {
        lines.recv()?;
    }
    for _ in 0..FLOOR_LINES {
        floor.push(Tenth::read(&lines.recv()?.1)?);
    }
    let (mut times, mut during) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        std::thread::sleep(REST);
        while lines.try_recv().is_ok() {}
        let began = Instant::now();
        let text = crate::output_of(&mut heapr(&["snapshot", "take", &pid.to_string()]))?;
        times.push(began.elapsed());
        ensure!(text.contains("in 10,000,0"), "not all blocks are in it: {text}");
        // Read up to the end of the tenth in which the snapshot ended.
        loop {
            let (when, line) = lines.recv()?;
            during.push(Tenth::read(&line)?);
            if when >= began + times[times.len() - 1] {
                break;
            }
        }
    }
    let facts = std::fs::read_to_string(format!("/proc/{recorder}/status"))?;
    let peak = facts.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak_bytes = peak.context("no VmHWM")?.trim().parse::<u64>()? * 1024;
    Ok(Measured { times, during, floor, peak_bytes })
}

impl Tenth {
    fn read(line: &str) -> anyhow::Result<Self> {
        let (gap, pairs) = line.split_once(' ').context("the program's output")?;
        Ok(Self { worst_gap_ns: gap.parse()?, pairs: pairs.parse()? })
    }
}

/// Kills the program when this is dropped.
struct EndOf(u64);

impl Drop for EndOf {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", &self.0.to_string()]).status();
    }
}
