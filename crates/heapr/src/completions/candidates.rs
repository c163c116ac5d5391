//! Candidates for a word, and their kind.

use std::fmt::Write as _;

use heapr_query::Metric;
use heapr_session::{ProcessFacts, sessions};

use super::traces;
use crate::plain_text::printable;
use crate::processes;

/// Kind of an answer, which tells the shell how to offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words with descriptions that explain them.
    Words,
    /// Numbers or names that say nothing without their descriptions.
    Described,
    /// Paths, of which those that end in `/` go on.
    Paths,
    /// All files: the shell lists them.
    Files,
    /// All directories: the shell lists them.
    Directories,
    /// Programs: the shell lists them.
    Commands,
}

/// Candidate with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) description: String,
}

/// Answer to a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidates {
    pub(super) kind: Kind,
    pub(super) list: Vec<Candidate>,
}

impl Candidates {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, list: Vec::new() }
    }

    /// Adds a candidate if it begins as the typed word does.
    pub(super) fn add(&mut self, typed: &str, word: impl Into<String>, description: impl Into<String>) {
        let word = word.into();
        if word.starts_with(typed) {
            self.list.push(Candidate { word, description: description.into() });
        }
    }

    /// Returns the lines of the answer.
    pub(super) fn text(&self) -> String {
        let kind = match self.kind {
            Kind::Words => "words",
            Kind::Described => "described",
            Kind::Paths => "paths",
            Kind::Files => "files",
            Kind::Directories => "directories",
            Kind::Commands => "commands",
        };
        let mut text = format!("{kind}\n");
        for candidate in &self.list {
            let _ = writeln!(text, "{}\t{}", printable(&candidate.word), printable(&candidate.description));
        }
        text
    }
}

/// Returns the candidates for a value, by its name in the help: `PID|NAME`, `FILE`.
pub(super) fn of_value(argument: &clap::Arg, typed: &str) -> Candidates {
    let mut found = Candidates::new(Kind::Words);
    let values = argument.get_possible_values();
    if !values.is_empty() {
        for value in values.iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            found.add(typed, value.get_name(), help);
        }
        return found;
    }
    let name = argument.get_value_names().unwrap_or_default().first().map(ToString::to_string);
    let name = name.unwrap_or_default();
    let (is_positional, id) = (argument.is_positional(), argument.get_id().as_str());
    match (name.as_str(), is_positional) {
        ("KEY", _) => {
            Metric::sort_keys().for_each(|metric| found.add(typed, metric.key(), metric.words()));
            found
        }
        // The name of a session that is to be started is free.
        ("PROGRAM", true) => Candidates::new(Kind::Commands),
        ("NAME" | "", true) if !argument.get_default_values().is_empty() => found,
        ("NAME" | "SESSION", true) => of_sessions(typed),
        ("NAME", false) if id == "session" => of_sessions(typed),
        ("WORDS", true) => of_sessions(typed),
        ("PID", true) => of_processes(typed),
        ("PID|NAME", false) => of_processes(typed),
        ("PID|NAME" | "SECONDS PID|NAME…", true) => {
            let mut found = of_processes(typed);
            found.list.extend(of_sessions(typed).list);
            found
        }
        ("PID|NAME|FILE", true) => {
            let mut found = traces::in_folder(typed);
            if !typed.contains('/') {
                found.list.extend(of_sessions(typed).list);
                found.list.extend(of_processes(typed).list);
                found.kind = Kind::Described;
            }
            found
        }
        ("FILE|NAME" | "NAME|FILE", true) => {
            let mut found = traces::in_folder(typed);
            found.list.extend(of_sessions(typed).list);
            found
        }
        ("FILE" | "A" | "B", true) => traces::or_files(typed),
        ("DIR" | "DIRECTORY" | "FOLDER", _) => Candidates::new(Kind::Directories),
        ("FILE" | "OUT" | "OUT.html" | "OLD" | "EXE" | "FILE|DIRECTORY" | "DIRECTORY|FILE", _) => {
            Candidates::new(Kind::Files)
        }
        _ => found,
    }
}

fn of_sessions(typed: &str) -> Candidates {
    let mut found = Candidates::new(Kind::Described);
    sessions().into_iter().for_each(|entry| found.add(typed, entry.name, "session"));
    found
}

/// Returns processes whose programs this user may see: by number, and by name once a letter is
/// typed.
pub(super) fn of_processes(typed: &str) -> Candidates {
    let mut found = Candidates::new(Kind::Described);
    let is_name = typed.chars().next().is_some_and(|letter| !letter.is_ascii_digit());
    let own = [std::process::id(), std::os::unix::process::parent_id()];
    let mut all = ProcessFacts::of_all();
    all.retain(|facts| !own.contains(&facts.pid));
    for facts in &all {
        let command = processes::command_line(facts.pid).unwrap_or_else(|| facts.name().to_owned());
        if !is_name {
            found.add(typed, facts.pid.to_string(), command);
        } else if found.list.iter().all(|known| known.word != facts.name()) {
            found.add(typed, facts.name(), command);
        }
    }
    found
}
