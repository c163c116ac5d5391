//! A day of kills in minutes: programs of many groups die one after the other under one watch. Its
//! recorder is killed at random moments. Each death has one incident, and the folder keeps its
//! bound.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::memory_group::{MemoryGroup, Trial, waited};

/// Default number of deaths. A recorder is killed with every tenth.
const DEATHS: u32 = 200;
/// Limit of the groups in MiB.
const LIMIT_MIB: u64 = 32;
/// Bound of the folder of incidents, as the option and in bytes.
const KEPT: (&str, u64) = ("64M", 64 << 20);
/// Room for the newest incident, which always stays, and for the running recording with its two
/// earlier files of 64 MiB.
const BESIDE_BYTES: u64 = 200 << 20;
/// Time in which a watch finds a process that has started.
const FOUND: Duration = Duration::from_secs(4);
/// Longest time that one death takes.
const LIMIT: Duration = Duration::from_secs(120);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Runs so many deaths.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let count = match arguments {
        [] => DEATHS,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of deaths"))?,
    };
    let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64) | 1;
    println!("soak watch: {count} deaths, seed {seed}");
    let mut random = Random(seed);
    let trial = Trial::new()?;
    let program = trial.path("leak");
    let source = crate::root().join("victims/deaths/leak.cc");
    crate::run(Command::new("g++").args(["-g", "-O1", "-o"]).arg(&program).arg(source))?;
    // One group above all is watched, as a node's containers are.
    let above = MemoryGroup::new("soak-watch", None, None)?;
    let quiet = MemoryGroup::new("soak-quiet", Some(&above), None)?;
    let mut witness =
        quiet.command(&["sleep".to_owned(), "36000".to_owned()], trial.folder.path()).spawn()?;
    waited(LIMIT, || Ok(quiet.process_count() > 0))?;
    let kept = (count * 2).to_string();
    let watch = trial.watch(&["--cgroup", &above.path, "--keep", &kept, "--keep-size", KEPT.0])?;
    let started = Instant::now();
    let (mut named, mut killed, mut largest) = (0, 0, 0);
    for number in 1..=count {
        let group = MemoryGroup::new("soak-one", Some(&above), Some(LIMIT_MIB))?;
        let _ = fs::remove_file(trial.path("go"));
        let words = [program.to_string_lossy().into_owned()];
        let mut child = group.command(&words, trial.folder.path()).spawn()?;
        waited(LIMIT, || Ok(group.process_count() > 0))?;
        std::thread::sleep(FOUND);
        fs::write(trial.path("go"), "")?;
        if number % 10 == 0 {
            std::thread::sleep(Duration::from_millis(random.below(3000)));
            killed += u32::from(kill_recorder(&trial)?);
        }
        child.wait()?;
        let is_told = waited(LIMIT, || Ok(trial.deaths()?.len() >= number as usize))?;
        ensure!(is_told, "death {number} has no incident: {}", fs::read_to_string(trial.path("said"))?);
        largest = largest.max(size(&trial)?);
        let last = trial.incident(trial.deaths()?.last().copied().unwrap_or(0));
        named += u32::from(last.is_ok_and(|last| {
            last["cause"]["kind"] == "kernel_group"
                && last["sentences"][0].as_str().is_some_and(|text| text.contains("OrderCache::remember"))
        }));
        ensure!(largest <= KEPT.1 + BESIDE_BYTES, "the folder has {largest} bytes after death {number}");
    }
    let told = trial.deaths()?.len();
    watch.end()?;
    let _ = witness.kill();
    let _ = witness.wait();
    println!(
        "{told} deaths told of {count} in {} s; {named} name the function; the recorder was killed {killed} times; \
         the folder had at most {} MiB",
        started.elapsed().as_secs(),
        largest >> 20
    );
    ensure!(told == count as usize, "{told} incidents of {count} deaths");
    Ok(())
}

/// Kills the recorder of the watch. Returns true if one runs.
fn kill_recorder(trial: &Trial) -> anyhow::Result<bool> {
    let status =
        crate::output_of(trial.heapr(&["status", "--format", "json"]).stderr(std::process::Stdio::null()))?;
    let status: serde_json::Value = serde_json::from_str(&status)?;
    let pid = status["sessions"][0]["recorder_pid"].as_u64();
    if let Some(pid) = pid {
        crate::run(Command::new("kill").args(["-KILL", &pid.to_string()]))?;
    }
    Ok(pid.is_some())
}

/// Bytes of all files in the folder of incidents.
fn size(trial: &Trial) -> anyhow::Result<u64> {
    let entries = fs::read_dir(trial.path("incidents"))?.flatten();
    Ok(entries.filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len()).sum())
}
