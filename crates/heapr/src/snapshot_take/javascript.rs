//! Processes that run JavaScript: those that are named, or those that a shell, an init or a package
//! manager has started.

use heapr_inspector::Process;
use heapr_session::descendants;

use crate::{containers, processes};

/// Programs that wait for others, so that their own heaps do not matter.
const WAITING: &str = "sh bash dash ash zsh ksh fish busybox env tini tini-static dumb-init docker-init catatonit \
                       timeout unshare nsenter su sudo doas runuser setpriv script runsv s6-supervise";
/// Programs run by Node that wait for others.
const WAITING_IN_NODE: &str = "npm npx yarn yarnpkg pnpm pnpx corepack nodemon concurrently cross-env lerna nx turbo \
                               tsx pm2 forever";

/// Returns the processes that the words name. `with_children`: also all descendants that run
/// JavaScript, without those that only wait for them.
pub(crate) fn named(words: &[String], with_children: bool) -> anyhow::Result<Vec<u32>> {
    let (containers, words): (Vec<String>, Vec<String>) =
        words.iter().cloned().partition(|word| word.starts_with(containers::PREFIX));
    let in_containers = processes::named(&containers, false)?;
    let mut running: Vec<Process> =
        in_containers.iter().filter_map(|&pid| Process::examine(pid).ok()).collect();
    running.retain(|process| process.runs_javascript() && !only_waits(process));
    if running.is_empty()
        && let Some(container) = containers.first()
    {
        anyhow::bail!("none of the {} processes of {container} runs JavaScript", in_containers.len());
    }
    let mut pids: Vec<u32> = running.iter().map(|process| process.pid).collect();
    let named = processes::named(&words, with_children)?;
    if !with_children {
        pids.extend(named);
        return Ok(pids);
    }
    for pid in named {
        let below = below(pid);
        let counts = |process: &Process| process.runs_javascript() && !only_waits(process);
        let own =
            (below.is_empty() || Process::examine(pid).is_ok_and(|process| counts(&process))).then_some(pid);
        for pid in own.into_iter().chain(below) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
    }
    Ok(pids)
}

/// Whether JavaScript snapshots are meant by this process, if no option says so.
pub(crate) fn is_meant(pid: u32, with_children: bool) -> bool {
    let Ok(process) = Process::examine(pid) else { return false };
    process.runs_javascript() || (with_children || only_waits(&process)) && !below(pid).is_empty()
}

/// Returns a sentence on the descendants of a process that run JavaScript.
pub(crate) fn started_by(pid: u32) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let below = below(pid);
    let named = |&pid: &u32| match processes::command_line(pid) {
        Some(command) => format!("{pid} ({})", crate::plain_text::printable(&command)),
        None => pid.to_string(),
    };
    let named: Vec<String> = below.iter().take(NAMED_MAX).map(named).collect();
    let more = below.len().checked_sub(NAMED_MAX + 1).map(|more| format!(" and {} more", more + 1));
    let (noun, pronoun) = if below.len() == 1 { ("process", "it") } else { ("processes", "them") };
    let what = format!("has started {noun} {}{}", named.join(", "), more.unwrap_or_default());
    (!below.is_empty()).then(|| format!("{what}: take {pronoun} by number, or with --tree"))
}

/// Returns the descendants of a process that run JavaScript.
fn below(pid: u32) -> Vec<u32> {
    let examined = descendants(pid).into_iter().filter_map(|pid| Process::examine(pid).ok());
    // The helpers of a browser have no inspector of their own.
    let is_helper =
        |process: &Process| process.arguments.iter().any(|argument| argument.starts_with("--type="));
    let running = examined.filter(|process| !is_helper(process) && process.runs_javascript());
    let (waiting, others): (Vec<Process>, Vec<Process>) = running.partition(only_waits);
    let found = if others.is_empty() { waiting } else { others };
    found.iter().map(|process| process.pid).collect()
}

fn only_waits(process: &Process) -> bool {
    let program = process.program.as_str();
    // Package managers write a title over their arguments.
    let mut words = process.arguments.iter().flat_map(|argument| argument.split_whitespace()).take(2);
    is_in(WAITING, program)
        || words.any(|word| {
            let name = word.rsplit('/').next().unwrap_or_default();
            let name = name.split('.').next().unwrap_or_default();
            is_in(WAITING_IN_NODE, &name.strip_suffix("-cli").unwrap_or(name).to_ascii_lowercase())
        })
}

fn is_in(words: &str, wanted: &str) -> bool {
    words.split(' ').any(|word| word == wanted)
}
