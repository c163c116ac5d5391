//! Snapshots of native heaps: taking, reading and comparing those in `.heapr` files.
//!
//! `heapr snapshot summary`, `diff` and `suspects` are commands of two kinds of files with options of their own. Which one is
//! meant, the first bytes of the files tell, before the options are read.

mod diff;
mod every;
mod line_table;
pub(crate) mod rule_arguments;
mod series;
mod summary;
mod suspects;
mod take;
mod watchers;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use heapr_inspector::{Process, Runtime};

use crate::processes;

pub(crate) use summary::{snapshot_json, why};

/// The commands that read native snapshots.
#[derive(Debug, Parser)]
#[command(name = "heapr snapshot", version, propagate_version = true)]
struct NativeArguments {
    /// Shorten no name, however long the line
    #[arg(long, global = true)]
    wide: bool,
    #[command(subcommand)]
    command: NativeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NativeCommand {
    /// List the snapshots of a trace, and the stacks, frames or images of one with their ages
    Summary(Box<summary::SummaryArguments>),
    /// Compare two snapshots of native heaps: new, gone, grown
    Diff(Box<diff::DiffArguments>),
    /// List the stacks whose live bytes grow steadily over three or more snapshots
    Suspects(Box<suspects::SuspectsArguments>),
    /// Take a snapshot of the live heap of running processes
    Take(Box<take::TakeArguments>),
    /// Take snapshots of the live heap at intervals, or no more
    Every(Box<every::EveryArguments>),
}

/// Commands that both kinds of files have.
const READING: [&str; 3] = ["summary", "diff", "suspects"];
/// Commands that both kinds of processes have.
const TAKING: [&str; 2] = ["take", "every"];

/// Runs `heapr snapshot COMMAND …` if it is of traces: `None` if not.
pub(crate) fn run_if_native(words: &[OsString]) -> Option<anyhow::Result<ExitCode>> {
    let [_, group, command, rest @ ..] = words else { return None };
    let is_one_of = |known: &[&str]| known.iter().any(|known| command == known);
    let is_ours = group == "snapshot"
        && (is_one_of(&READING) && rest.iter().any(|word| is_trace(word))
            || is_one_of(&TAKING) && is_of_native_processes(command, rest));
    if !is_ours {
        return None;
    }
    let words = [OsString::from("heapr snapshot"), command.clone()].into_iter().chain(rest.iter().cloned());
    let arguments = NativeArguments::parse_from(words);
    if arguments.wide {
        crate::plain_text::set_wide();
    }
    Some(match arguments.command {
        NativeCommand::Summary(arguments) => summary::run(&arguments),
        NativeCommand::Diff(arguments) => diff::run(&arguments),
        NativeCommand::Suspects(arguments) => suspects::run(&arguments),
        NativeCommand::Take(arguments) => take::run(&arguments),
        NativeCommand::Every(arguments) => every::run(&arguments),
    })
}

/// Options that taking snapshots of native heaps has; any other is one of JavaScript's.
const TAKING_OPTIONS: [&str; 16] = [
    "--native", "--name", "--keep", "--off", "--output", "-o", "--force", "-f", "--format", "--quiet", "-q",
    "--tree", "--wide", "--help", "-h", "--",
];
/// Those of them whose value may be the next word.
const WITH_VALUES: [&str; 4] = ["--name", "--output", "-o", "--format"];

/// The commands, for tests of all options.
#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    <NativeArguments as clap::CommandFactory>::command()
}

/// Whether snapshots of native heaps are asked for: by an option that only they have, or because no process runs JavaScript.
fn is_of_native_processes(command: &OsStr, words: &[OsString]) -> bool {
    let has = |option: &str| words.iter().any(|word| word == option);
    // `every --keep N` is JavaScript's, too.
    if has("--native") || has("--tree") || (command == "take" && has("--keep")) || has("--off") {
        return true;
    }
    let is_known = |word: &OsString| {
        let word = word.to_string_lossy();
        let option = word.split('=').next().unwrap_or_default();
        !option.starts_with('-') || TAKING_OPTIONS.contains(&option)
    };
    if !words.iter().all(is_known) {
        return false;
    }
    let mut named: Vec<String> = Vec::new();
    let mut is_value = false;
    for word in words {
        if !std::mem::replace(&mut is_value, WITH_VALUES.iter().any(|option| word == option))
            && !word.as_encoded_bytes().starts_with(b"-")
        {
            named.push(word.to_string_lossy().into_owned());
        }
    }
    let is_interval_first = command == "every";
    let names = named.iter().skip(usize::from(is_interval_first));
    let pids = names.filter_map(|name| processes::named(std::slice::from_ref(name), has("--tree")).ok());
    let mut runtimes = pids.flatten().filter_map(|pid| Process::examine(pid).ok()).peekable();
    // What JavaScript a program of unknown make runs, its inspector would tell: native heaps are the common case.
    runtimes.peek().is_some() && runtimes.all(|process| process.runtime == Runtime::Unknown)
}

/// Whether a word names a file that begins as a trace does.
fn is_trace(word: &OsStr) -> bool {
    let path = Path::new(word);
    // Only plain files: a pipe would lose what is read of it here.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut magic = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"HEAPRTRC"
}
