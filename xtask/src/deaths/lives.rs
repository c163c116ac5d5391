//! Whether programs live as long with a watch as without: the order at which they meet their limit.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::programs::Programs;
use crate::memory_group::{MemoryGroup, Trial, Watch, waited};

/// Programs that count their orders in the file `count`, and the limits of their groups in MiB.
pub(super) const PROGRAMS: [(&str, u64); 3] =
    [("{leak}", 128), ("python3 {victims}/dictionary.py", 128), ("node {victims}/buffers.js", 256)];
/// Longest time until the limit is met.
const LIMIT: Duration = Duration::from_secs(300);
/// Largest difference of the medians, in hundredths of the first.
const DIFFERENCE_PERCENT: f64 = 2.0;

/// Lets each program die so many times without and with a watch, in turn.
pub(super) fn run(rounds: usize, programs: &Programs) -> anyhow::Result<()> {
    let mut farthest = 0.0_f64;
    for (command, limit_mib) in PROGRAMS {
        let (mut bare, mut watched) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            bare.push(orders(programs, command, limit_mib, false)?);
            watched.push(orders(programs, command, limit_mib, true)?);
        }
        let (without, with) = (median(&mut bare), median(&mut watched));
        let difference = (with as f64 - without as f64) / without as f64 * 100.0;
        println!(
            "{command}, orders until the limit of {limit_mib} MiB, medians of {rounds}: {difference:+.2} %"
        );
        println!("  {without} without a watch: {bare:?}\n  {with} with one: {watched:?}");
        farthest = farthest.max(difference.abs());
    }
    ensure!(farthest <= DIFFERENCE_PERCENT, "more than {DIFFERENCE_PERCENT} %");
    Ok(())
}

fn orders(programs: &Programs, command: &str, limit_mib: u64, is_watched: bool) -> anyhow::Result<u64> {
    let trial = Trial::new()?;
    let group = MemoryGroup::new("lives", None, Some(limit_mib))?;
    let mut child = group.command(&programs.command(command)?, trial.folder.path()).spawn()?;
    waited(LIMIT, || Ok(group.process_count() > 0))?;
    group.wait_until_loaded();
    let watch = is_watched.then(|| trial.watch(&["--cgroup", &group.path])).transpose()?;
    fs::write(trial.path("go"), "")?;
    let has_ended = waited(LIMIT, || Ok(child.try_wait()?.is_some()))?;
    watch.map(Watch::end).transpose()?;
    ensure!(has_ended, "the program lives after {LIMIT:?}");
    let bytes = fs::read(trial.path("count"))?;
    Ok(u64::from_le_bytes(bytes.as_slice().try_into().context("the file `count`")?))
}

fn median(all: &mut [u64]) -> u64 {
    all.sort_unstable();
    all[all.len() / 2]
}
