//! Runs the programs of `victims/node/stories`, which reproduce leaks of public stories, and those
//! of `victims/node/healthy`. They take minutes; docs/testing.md has the command.

use std::path::{Path, PathBuf};

use heapr_v8::analysis::{Confidence, Suspects, suspects};

use crate::expectation::Expectation;
use crate::program::{Program, installed_folder};
use crate::{open, shown, taking};

/// Method of taking the snapshots.
#[derive(Debug, Clone, Copy)]
enum Capture {
    /// All over one connection: objects have stable ids.
    ById,
    /// All over one connection, with V8's internal objects.
    WithInternals,
    /// Each over a connection of its own: objects are matched by position.
    ByPlace,
}

/// Largest rank of an expected owner that is not first.
const LAST_RANK: usize = 3;

fn programs(folder: &Path) -> Vec<PathBuf> {
    let filter = std::env::var("HEAPR_STORY").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of the programs")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|end| end == "js" || end == "mjs"))
        .filter(|file| file.to_string_lossy().contains(&filter))
        .collect();
    files.sort();
    files
}

/// Suspects found in snapshots of each kind. Snapshots by id and with internals are of one process.
fn found_in(file: &Path) -> Option<Vec<(Capture, Suspects)>> {
    let mut found = Vec::new();
    for captures in [&[Capture::ById, Capture::WithInternals][..], &[Capture::ByPlace]] {
        let folder = tempfile::tempdir().expect("a folder for snapshots");
        let mut program = Program::start_file(file)?;
        let mut files = vec![Vec::new(); captures.len()];
        for (number, rounds) in [1, 2, 2].into_iter().enumerate() {
            for _ in 0..rounds {
                program.tell("work");
            }
            for (&capture, files) in captures.iter().zip(&mut files) {
                let file = folder.path().join(format!("{capture:?}.{number}.heapsnapshot"));
                match capture {
                    Capture::ById => program.tell(&format!("snapshot {}", file.display())),
                    Capture::WithInternals => program.tell(&format!("internals {}", file.display())),
                    Capture::ByPlace => taking::take(program.pid(), None, &file),
                }
                files.push(file);
            }
        }
        drop(program);
        for (&capture, files) in captures.iter().zip(&files) {
            let heaps = open(files);
            found.push((capture, suspects(&heaps.iter().collect::<Vec<_>>(), 5)));
        }
    }
    Some(found)
}

#[test]
#[ignore = "takes minutes"]
fn the_true_owner_is_first_in_programs_that_leak_as_in_public_stories() {
    let Some(folder) = installed_folder("stories", Some("winston")) else { return };
    let (mut first, mut count, mut later) = (0, 0, Vec::new());
    for file in programs(&folder) {
        let expectation = Expectation::of_file(&file);
        let Some(found) = found_in(&file) else { return };
        for (capture, found) in found {
            let rank = found.suspects.iter().position(|suspect| expectation.is_met_by(suspect));
            let is_sure = found.suspects.first().is_some_and(|first| first.confidence >= Confidence::Medium);
            count += 1;
            if rank == Some(0) && is_sure {
                first += 1;
                continue;
            }
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            println!("{name} {capture:?}: {expectation:?} is at {rank:?}\n{}", shown(&found));
            later.push((name, rank));
        }
    }
    println!("the true owner is first in {first} of {count}");
    assert!(later.iter().all(|(_, rank)| rank.is_some_and(|rank| rank < LAST_RANK)), "{later:?}");
    assert!(first * 100 >= count * 97, "{later:?}");
}

#[test]
#[ignore = "takes minutes"]
fn programs_that_keep_nothing_are_not_accused() {
    let Some(folder) = installed_folder("healthy", None) else { return };
    let mut accused = Vec::new();
    for file in programs(&folder) {
        let Some(found) = found_in(&file) else { return };
        for (capture, found) in found {
            let of = |level| found.suspects.iter().filter(|found| found.confidence == level).count();
            if of(Confidence::High) > 0 || of(Confidence::Medium) > 1 {
                let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                println!("{name} {capture:?}\n{}", shown(&found));
                accused.push(name);
            }
        }
    }
    assert!(accused.is_empty(), "{accused:?}");
}
