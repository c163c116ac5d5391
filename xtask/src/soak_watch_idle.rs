//! Cost of a watch of idle processes: processor time and memory of the watcher and of its recorder.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::memory_group::{MemoryGroup, Trial, waited};

/// Default number of processes, and of minutes for each layout.
const PROCESSES: usize = 100;
const MINUTES: u64 = 2;
/// Memory of a process in MiB, and limit of its group.
const HELD_MIB: &str = "4";
const LIMIT_MIB: u64 = 64;
/// Time until accounts are read and groups are no longer young.
const SETTLED: Duration = Duration::from_secs(100);
/// Longest time until all processes are in their groups.
const LIMIT: Duration = Duration::from_secs(120);
/// Bars: share of a processor in hundredths of a percent, and MiB.
const CORE_BAR: u64 = 10;
const MIB_BAR: u64 = 30;

/// Processes that end where this is dropped.
struct Idle(Vec<Child>);

impl Drop for Idle {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Measures so many processes in one group, and in a group each.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let number = |place: usize, default: u64| match arguments.get(place) {
        Some(word) => word.parse().with_context(|| format!("{word} is no number")),
        None => Ok(default),
    };
    let (count, minutes) = (number(0, PROCESSES as u64)? as usize, number(1, MINUTES)?);
    let mut is_met = true;
    for is_of_one_group in [true, false] {
        is_met &= measured(count, Duration::from_secs(minutes * 60), is_of_one_group)?;
    }
    ensure!(is_met, "more than 0.{CORE_BAR} % of a processor, or {MIB_BAR} MiB");
    Ok(())
}

/// Measures one layout. Returns whether both bars are met.
fn measured(count: usize, time: Duration, is_of_one_group: bool) -> anyhow::Result<bool> {
    let trial = Trial::new()?;
    let program = trial.path("steady");
    let source = crate::root().join("victims/deaths/steady.c");
    crate::run(Command::new("gcc").args(["-g", "-O1", "-fno-builtin", "-o"]).arg(&program).arg(source))?;
    fs::write(trial.path("go"), "")?;
    let above = MemoryGroup::new("idle", None, None)?;
    let group_count = if is_of_one_group { 1 } else { count };
    let groups: Vec<MemoryGroup> = (0..group_count)
        .map(|number| {
            let limit_mib = if is_of_one_group { LIMIT_MIB * count as u64 } else { LIMIT_MIB };
            MemoryGroup::new(&format!("idle-{number}"), Some(&above), Some(limit_mib))
        })
        .collect::<Result<_, _>>()?;
    let words = [program.to_string_lossy().into_owned(), HELD_MIB.to_owned()];
    let mut idle = Idle(Vec::new());
    for number in 0..count {
        let mut command = groups[number % group_count].command(&words, trial.folder.path());
        idle.0.push(command.spawn()?);
    }
    let is_full = || Ok(groups.iter().map(MemoryGroup::process_count).sum::<usize>() == count);
    ensure!(waited(LIMIT, is_full)?, "not all processes have started");
    std::thread::sleep(Duration::from_secs(3));
    let watch = trial.watch(&["--cgroup", &above.path])?;
    let recorder = recorder(&trial)?;
    let pids = [("watcher", watch.id()), ("recorder", recorder)];
    let begun = pids.map(|(_, pid)| run_ns(pid));
    std::thread::sleep(SETTLED);
    let (started, before) = (Instant::now(), pids.map(|(_, pid)| run_ns(pid)));
    std::thread::sleep(time);
    let (seconds, after) = (started.elapsed().as_secs_f64(), pids.map(|(_, pid)| run_ns(pid)));
    let goes_on = |from: [u64; 2], to: [u64; 2]| from.iter().zip(&to).all(|(from, to)| to >= from);
    ensure!(
        goes_on(begun, before) && goes_on(before, after),
        "the watcher, its recorder or a thread has ended"
    );
    println!("{count} idle processes in {group_count} groups:");
    let (mut share, mut kib) = (0.0, 0);
    for (place, (name, pid)) in pids.iter().enumerate() {
        let own = (after[place] - before[place]) as f64 / 1e7 / seconds;
        let first = (before[place] - begun[place]) as f64 / 1e7 / SETTLED.as_secs_f64();
        let own_kib = resident_kib(*pid);
        println!(
            "  {name}: {own:.3} % of a processor ({first:.3} % in the first {} s), {:.1} MiB",
            SETTLED.as_secs(),
            own_kib as f64 / 1024.0
        );
        share += own;
        kib += own_kib;
    }
    println!("  both: {share:.3} %, {:.1} MiB", kib as f64 / 1024.0);
    ensure!(trial.incidents()?.is_empty(), "idle processes have incidents");
    watch.end()?;
    Ok(share * 100.0 <= CORE_BAR as f64 && kib <= MIB_BAR << 10)
}

/// Process id of the recorder.
fn recorder(trial: &Trial) -> anyhow::Result<u32> {
    let status = crate::output_of(&mut trial.heapr(&["status", "--format", "json"]))?;
    let status: serde_json::Value = serde_json::from_str(&status)?;
    let pid = status["sessions"][0]["recorder_pid"].as_u64().context("no recorder runs")?;
    Ok(u32::try_from(pid)?)
}

/// Time in ns for which all threads of a process have run.
fn run_ns(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_one = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    threads.map(of_one).sum()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
