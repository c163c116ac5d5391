//! Resolves processes as users name them: by number, program name, container or session.

use std::collections::HashSet;

use anyhow::bail;
use heapr_proc::Fields;
use heapr_session::{Answer, FlagTarget, ProcessFacts, Request, SessionClient, SessionName, descendants};

use crate::containers;
use crate::plain_text::printable;

/// Largest number of processes listed when a name matches several.
const LISTED_MAX: usize = 20;
/// Largest number of characters of a command line in that list.
const COMMAND_CHARACTERS_MAX: usize = 60;

/// Returns the processes that the words name, each once. `container:ID` names all processes of a
/// container. A word that matches no process may name a session, and means the processes that it
/// records.
/// `with_children`: of several processes of one name, those that another one of them has started
/// are left out.
///
/// # Errors
/// No process has such a name, or several have.
pub(crate) fn named(words: &[String], with_children: bool) -> anyhow::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for word in words {
        let found = match word.strip_prefix(containers::PREFIX) {
            Some(container) => containers::processes_of(container)?,
            None => match one(word, with_children) {
                Ok(pid) => vec![pid],
                Err(error) => of_session(word).ok_or(error)?,
            },
        };
        for pid in found {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
    }
    Ok(pids)
}

/// Returns the processes of [`named`], and with `with_children` their descendants too.
///
/// # Errors
/// As [`named`].
pub(crate) fn named_with_children(words: &[String], with_children: bool) -> anyhow::Result<Vec<u32>> {
    let mut pids = named(words, with_children)?;
    let below: Vec<u32> =
        if with_children { pids.iter().flat_map(|&pid| descendants(pid)).collect() } else { Vec::new() };
    below.into_iter().for_each(|pid| {
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    });
    Ok(pids)
}

/// Returns a sentence on the descendants of `pids` that are missing from `pids`.
pub(crate) fn children_left_out(pids: &[u32]) -> Option<String> {
    let children: Vec<u32> =
        pids.iter().flat_map(|&pid| descendants(pid)).filter(|pid| !pids.contains(pid)).collect();
    let first = children.first()?;
    let what = if let [_] = children.as_slice() {
        format!("a child that runs, {first}, is not in it")
    } else {
        format!("{} children that run, {first} and others, are not in it", children.len())
    };
    Some(format!("{what}: --tree takes them too"))
}

/// Returns the live processes that the session of this name records, or `None` without such a
/// process.
fn of_session(name: &str) -> Option<Vec<u32>> {
    let client = SessionClient::find(&SessionName::new(name).ok()?).ok()?;
    let Ok(Answer::Status(status)) = client.ask(Request::Status) else { return None };
    let live = status.processes.iter().filter(|process| process.is_alive);
    Some(live.map(|process| process.pid).collect()).filter(|pids: &Vec<u32>| !pids.is_empty())
}

fn one(word: &str, with_children: bool) -> anyhow::Result<u32> {
    if let Ok(pid) = word.parse() {
        return match process_of_thread(pid) {
            Some(process) if process != pid => {
                bail!("{pid} is a thread of process {process}: give the process's number")
            }
            _ => Ok(pid),
        };
    }
    let target = FlagTarget::Name(word.to_owned());
    target.check()?;
    let mut found = ProcessFacts::of_all();
    found.retain(|facts| target.fits(facts) && facts.pid != std::process::id());
    if with_children && found.len() > 1 {
        let below: HashSet<u32> = found.iter().flat_map(|facts| descendants(facts.pid)).collect();
        found.retain(|facts| !below.contains(&facts.pid));
    }
    match found.as_slice() {
        [] => bail!(
            "no process that this user may look at is called {word:?}: give its number, or a session's name"
        ),
        [facts] => Ok(facts.pid),
        several => {
            // An error is one line; what it is about stands above it.
            for facts in several.iter().take(LISTED_MAX) {
                let command = command_line(facts.pid).unwrap_or_else(|| facts.name().to_owned());
                tell!("  {:>7}  {}", facts.pid, printable(&command));
            }
            if let Some(more @ 1..) = several.len().checked_sub(LISTED_MAX) {
                tell!("  … and {more} more");
            }
            let tree = if with_children { "" } else { ", or --tree where one has started the others" };
            bail!("{word} means {} processes; give a number{tree}", several.len())
        }
    }
}

/// Returns the process that a thread belongs to: /proc answers for thread ids too.
fn process_of_thread(pid: u32) -> Option<u32> {
    Fields::of_process(pid).ok()?.number("Tgid")
}

pub(crate) fn command_line(pid: u32) -> Option<String> {
    let text: String =
        heapr_proc::command_line(pid).join(" ").trim_end().chars().take(COMMAND_CHARACTERS_MAX).collect();
    (!text.is_empty()).then_some(text)
}
