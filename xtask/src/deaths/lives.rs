//! Whether a program lives as long with a watch as without: the order at which it meets its limit.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::programs::Programs;
use crate::memory_group::{MemoryGroup, Trial, Watch, waited};

/// Limit of the group in MiB.
const LIMIT_MIB: u64 = 128;
/// Longest time until the limit is met.
const LIMIT: Duration = Duration::from_secs(300);
/// Largest difference of the medians, in hundredths of the first.
const DIFFERENCE_PERCENT: f64 = 2.0;

/// Lets a program die so many times without and with a watch, in turn.
pub(super) fn run(rounds: usize, programs: &Programs) -> anyhow::Result<()> {
    let (mut bare, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        bare.push(orders(programs, false)?);
        watched.push(orders(programs, true)?);
    }
    let (without, with) = (median(&mut bare), median(&mut watched));
    let difference = (with as f64 - without as f64) / without as f64 * 100.0;
    println!("orders until the limit of {LIMIT_MIB} MiB, medians of {rounds}: {difference:+.2} %");
    println!("  {without} without a watch: {bare:?}\n  {with} with one: {watched:?}");
    ensure!(difference.abs() <= DIFFERENCE_PERCENT, "more than {DIFFERENCE_PERCENT} %");
    Ok(())
}

fn orders(programs: &Programs, is_watched: bool) -> anyhow::Result<u64> {
    let trial = Trial::new()?;
    let group = MemoryGroup::new("lives", None, Some(LIMIT_MIB))?;
    let mut child = group.command(&programs.command("{leak}")?, trial.folder.path()).spawn()?;
    waited(LIMIT, || Ok(group.process_count() > 0))?;
    std::thread::sleep(Duration::from_millis(300));
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
