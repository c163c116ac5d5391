//! Deaths for lack of memory, in control groups made here: whether the first sentence of
//! `heapr watch` names the true cause.

mod cases;
mod lives;
mod programs;

use std::fs::{self, File};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::memory_group::{MemoryGroup, Trial, waited};
use cases::{DEATHS, Death, Other};
use programs::Programs;

/// Step of a limit that is lowered in version 1.
const STEP_BYTES: u64 = 4 << 20;
/// Longest time that a program takes to die. An emulated machine may have a small part of a
/// processor.
const LIMIT: Duration = Duration::from_secs(900);

/// Number of deaths of which one may be told wrong: the bar is twelve of fourteen.
const DEATHS_A_MISS: usize = 7;

/// Runs each death, or those that are named, and prints a table of first sentences.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    if let ["--lives", count] = words {
        let count = count.parse().with_context(|| format!("{count} is no number of rounds"))?;
        return lives::run(count, &Programs::built(&lives::PROGRAMS.map(|(command, _)| command))?);
    }
    let (rounds, names) = match words {
        ["--rounds", count, names @ ..] => {
            (count.parse::<u32>().with_context(|| format!("{count} is no number of rounds"))?, names)
        }
        names => (1, names),
    };
    let chosen: Vec<&Death> =
        DEATHS.iter().filter(|death| names.is_empty() || names.contains(&death.name)).collect();
    ensure!(!chosen.is_empty(), "no death has one of the names {names:?}");
    let programs = Programs::built(&chosen.iter().map(|death| death.command).collect::<Vec<_>>())?;
    println!("| death | limit | right | first sentence of the last round |\n|---|---:|---:|---|");
    let mut right = 0;
    for death in &chosen {
        let outcomes: Vec<(bool, String)> = (0..rounds)
            .map(|_| {
                let told = told_of(death, &programs);
                told.unwrap_or_else(|error| (false, format!("not judged: {error:#}")))
            })
            .collect();
        let count = outcomes.iter().filter(|(is_right, _)| *is_right).count();
        right += usize::from(count == outcomes.len());
        let shown = outcomes.iter().find(|(is_right, _)| !is_right).or(outcomes.last());
        let sentence = shown.map_or("", |(_, sentence)| sentence.as_str());
        println!(
            "| {} | {} MiB | {count} of {rounds} | {} |",
            death.name,
            death.limit_mib,
            sentence.replace('|', "\\|")
        );
    }
    println!("\n{right} of {} right in every round", chosen.len());
    let least = chosen.len() - chosen.len() / DEATHS_A_MISS;
    ensure!(right >= least, "fewer than {least} of {} tell the true cause", chosen.len());
    Ok(())
}

/// Runs one death. Returns whether the first sentence is right, and the sentence.
fn told_of(death: &Death, programs: &Programs) -> anyhow::Result<(bool, String)> {
    let trial = Trial::new()?;
    let is_shared = matches!(death.other, Other::Neighbour(_));
    let above =
        is_shared.then(|| MemoryGroup::new("deaths-parent", None, Some(death.limit_mib))).transpose()?;
    let group = MemoryGroup::new("deaths", above.as_ref(), (!is_shared).then_some(death.limit_mib))?;
    let neighbours =
        above.as_ref().map(|above| MemoryGroup::new("deaths-neighbour", Some(above), None)).transpose()?;
    let mut children: Vec<Child> = Vec::new();
    let words = programs.command(death.command)?;
    children.push(
        group.command(&words, trial.folder.path()).stderr(File::create(trial.path("stderr"))?).spawn()?,
    );
    waited(LIMIT, || Ok(group.process_count() > 0))?;
    group.wait_until_loaded();
    let watched = group.path.clone();
    let watch = trial.watch(&[&["--cgroup", &watched], death.watch].concat())?;
    if let (Other::Neighbour(command), Some(group)) = (death.other, &neighbours) {
        let words = programs.command(command)?;
        children.push(group.command(&words, trial.folder.path()).spawn()?);
    }
    fs::write(trial.path("go"), "")?;
    if let Other::Lowered(mib) = death.other {
        waited(LIMIT, || Ok(group.held_bytes() > 100 << 20))?;
        lower(&group, mib)?;
        fs::write(trial.path("more"), "")?;
    }
    let told = waited(LIMIT, || {
        let all = trial.incidents()?;
        Ok(all.iter().any(|incident| incident["kind"] == "death"))
    });
    watch.end()?;
    programs.clean();
    let all = trial.incidents()?;
    children.iter_mut().for_each(|child| drop(child.kill()));
    children.iter_mut().for_each(|child| drop(child.wait()));
    ensure!(told?, "nothing died within {LIMIT:?}: {}", fs::read_to_string(trial.path("said"))?);
    let deaths: Vec<&Value> = all.iter().filter(|incident| incident["kind"] == "death").collect();
    let sentence = deaths[0]["sentences"][0].as_str().unwrap_or_default().to_owned();
    let has = |words: &&str| words.split('|').any(|word| sentence.contains(word));
    let is_right = death.expected.iter().all(has);
    if !is_right {
        let of_death = |key: &str| serde_json::to_string_pretty(&deaths[0][key]).unwrap_or_default();
        eprintln!(
            "{}: {}",
            death.name,
            ["sentences", "unknown", "holders", "group"].map(of_death).join("\n")
        );
    }
    Ok((is_right, sentence))
}

/// Lowers a limit below what is used. Version 2 takes it, and the kernel kills. Version 1 refuses
/// it, as the memory cannot be freed. There the limit is lowered to the next [`STEP_BYTES`], which
/// the program meets as it goes on.
fn lower(group: &MemoryGroup, mib: u64) -> anyhow::Result<()> {
    if group.limit(mib << 20).is_ok() {
        return Ok(());
    }
    let is_taken = waited(Duration::from_secs(10), || {
        Ok(group.limit(group.held_bytes().next_multiple_of(STEP_BYTES)).is_ok())
    })?;
    ensure!(is_taken, "{} takes no limit near what is used", group.path);
    Ok(())
}
