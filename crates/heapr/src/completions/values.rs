//! Candidates for values of arguments: traces, sessions, processes, words.

use heapr_query::Metric;
use heapr_session::{ProcessFacts, sessions};

use super::candidates::{Candidates, Kind};
use super::traces;
use crate::processes;

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
