//! The report of an incident in sentences.

use heapr_table::quantity::{bytes, bytes_within};

use crate::cause::{CauseKind, Certainty};
use crate::ending::{Ending, signal_name};
use crate::incident::{GroupFacts, Holder, HolderKind, Incident, Kind};
use crate::wall_clock::{clock_text, span_text};
use crate::warning_sentence::{near_limit, so_held};

/// Least share of the memory, in hundredths, of a holder that the first sentence names.
const NAMED_PERCENT: u64 = 20;
/// Smallest amount that is told of the rest.
const TOLD_BYTES: u64 = 1 << 20;
/// Largest number of parts of the rest.
const PARTS_MAX: usize = 6;
/// Shortest climb for which a time until the limit is told, ns.
const CLIMB_NS_MIN: u64 = 5_000_000_000;
const MINUTE_NS: f64 = 60e9;

/// Writes the report into the incident.
pub fn tell(incident: &mut Incident) {
    let mut sentences = vec![first_sentence(incident)];
    sentences.extend(holder_sentence(incident));
    sentences.extend(rest_sentence(incident));
    sentences.extend(processes_sentence(incident));
    sentences.extend(climb_sentence(incident));
    sentences.extend(company_sentence(incident));
    incident.sentences = sentences;
}

/// First sentence: who, by whom, when, and what held the memory.
#[must_use]
pub fn first_sentence(incident: &Incident) -> String {
    let process = &incident.process;
    let who = format!("{} ({})", process.name, process.pid);
    let when = when(incident);
    let held = held_clause(incident);
    let limit = limit_clause(incident);
    // Without a limit in the sentence, shares are of the process's or the group's memory.
    let of_limit = if limit.is_empty() { so_held(&held) } else { held.clone() };
    let surely = match incident.cause.certainty {
        Certainty::Likely => "probably ",
        _ => "",
    };
    match incident.cause.kind {
        CauseKind::NearLimit | CauseKind::NearOwnLimit => near_limit(incident, &who, &held),
        CauseKind::KernelGroup | CauseKind::Kernel => {
            format!("{who} was {surely}killed by the kernel for lack of memory {when}{limit}{of_limit}.")
        }
        CauseKind::KernelWholeGroup => format!(
            "{who} was {surely}killed by the kernel with its whole group for lack of memory {when}{limit}{of_limit}."
        ),
        CauseKind::KernelMachine => {
            let held = so_held(&held);
            format!("{who} was {surely}killed by the kernel {when}, as the machine had no memory left{held}.")
        }
        CauseKind::SystemdOomd => {
            let group = incident.cause.group.as_deref().unwrap_or("its group");
            format!(
                "{who} was {surely}killed {when} by systemd-oomd, for pressure on the memory of {group}{held}."
            )
        }
        CauseKind::AddressSpace => format!(
            "{who} ended by itself {when} ({}), {surely}as it had reached its limit of address space of {}{}.",
            ending_text(incident.ending),
            bytes(incident.cause.limit_bytes.unwrap_or(0)),
            so_held(&held)
        ),
        CauseKind::RuntimeLimit => format!(
            "{who} ended by itself {when} ({}), {surely}as its heap had reached its own limit of {}{held}.",
            ending_text(incident.ending),
            bytes(incident.cause.limit_bytes.unwrap_or(0))
        ),
        CauseKind::OutOfMemoryError | CauseKind::FailedAllocation => {
            let after = match incident.cause.kind {
                CauseKind::OutOfMemoryError => "an OutOfMemoryError",
                _ => "an allocation that failed",
            };
            format!(
                "{who} ended by itself {when} ({}), {surely}after {after}{}.",
                ending_text(incident.ending),
                so_held(&held)
            )
        }
        CauseKind::Crash => {
            format!("{who} ended {when} by {}{}.", ending_text(incident.ending), so_held(&held))
        }
        CauseKind::Exit => {
            format!("{who} ended by itself {when} ({}){}.", ending_text(incident.ending), so_held(&held))
        }
        CauseKind::Killed => format!(
            "{who} was killed {when} by SIGKILL, which the kernel {surely}did not send for lack of memory; who sent it is \
             unknown{}.",
            so_held(&held)
        ),
        CauseKind::Unknown => format!("{who} ended {when}; why is unknown{}.", so_held(&held)),
    }
}

fn when(incident: &Incident) -> String {
    let time = clock_text(incident.time_unix_ns, incident.time_unix_ns);
    match incident.not_before_unix_ns {
        Some(before) => {
            format!("between {} and {time}", clock_text(before, incident.time_unix_ns))
        }
        None => format!("at {time}"),
    }
}

fn ending_text(ending: Option<Ending>) -> String {
    match ending {
        Some(Ending::Exited { status }) => format!("status {status}"),
        Some(Ending::Signalled { signal, .. }) => signal_name(signal),
        Some(Ending::Unknown) | None => "its status is unknown".to_owned(),
    }
}

fn limit_clause(incident: &Incident) -> String {
    match (&incident.cause.group, incident.cause.limit_bytes) {
        (Some(group), Some(limit)) => {
            let lowered = lowered_clause(incident, group, limit);
            format!(": {group} reached its limit of {}{lowered}", bytes(limit))
        }
        (Some(group), None) => format!(": {group} reached its limit"),
        _ => String::new(),
    }
}

/// Clause on the limit before, if it was lowered.
fn lowered_clause(incident: &Incident, limited_group: &str, limit_bytes: u64) -> String {
    let facts = incident.group.as_ref().filter(|facts| facts.limited_group.as_deref() == Some(limited_group));
    // The limit may have been raised since the last reading.
    let lowered = facts.and_then(|facts| facts.lowered).filter(|lowered| lowered.from_bytes > limit_bytes);
    let Some(lowered) = lowered else { return String::new() };
    let after = clock_text(lowered.after_unix_ns, incident.time_unix_ns);
    format!(" (lowered from {} after {after})", bytes(lowered.from_bytes))
}

/// Bytes of which shares are told: the limit that was met, the usage of the group, or the resident
/// set of the process.
fn whole_bytes(incident: &Incident) -> Option<u64> {
    let cause = &incident.cause;
    let usage = incident
        .group
        .as_ref()
        .filter(|group| group.limit_bytes.is_some())
        .and_then(|group| group.usage_bytes);
    let whole = if cause.kind.is_of_group() {
        // A limit that was met is what was used.
        cause.limit_bytes.or(usage).or(incident.process.rss_bytes)
    } else {
        let is_of_heap = cause.kind == CauseKind::RuntimeLimit
            && incident.holders.first().is_some_and(|holder| holder.kind == HolderKind::Class);
        cause.limit_bytes.filter(|_| is_of_heap).or(incident.process.rss_bytes)
    };
    whole.filter(|&whole| whole > 0)
}

fn percent_of(part: u64, whole: u64) -> u64 {
    u64::try_from((u128::from(part) * 100 + u128::from(whole) / 2) / u128::from(whole.max(1)))
        .unwrap_or(100)
        .min(100)
}

/// Largest holder that has enough of the memory to be named.
fn main_holder(incident: &Incident) -> Option<(&Holder, u64)> {
    let holder = incident.holders.first()?;
    let whole = whole_bytes(incident)?;
    let percent = percent_of(holder.bytes, whole);
    (percent >= NAMED_PERCENT).then_some((holder, percent))
}

fn held_clause(incident: &Incident) -> String {
    match main_holder(incident) {
        Some((holder, percent)) => {
            let owner = holder.held_by.as_ref().map(|path| format!(", held by {path}")).unwrap_or_default();
            format!(", {percent} % of it in {}{owner}", in_process(holder, incident))
        }
        None => String::new(),
    }
}

/// Name of a holder, with its processes if these are not the incident's own alone.
fn in_process(holder: &Holder, incident: &Incident) -> String {
    let named = |pid: u32| {
        let processes = incident.group.as_ref().map(|group| group.processes.as_slice()).unwrap_or_default();
        let name =
            processes.iter().find(|process| process.pid == pid).map_or("process", |process| &process.name);
        format!("{name} ({pid})")
    };
    match holder.processes.as_slice() {
        [] => holder.name.clone(),
        [(pid, _)] if *pid == incident.process.pid => holder.name.clone(),
        [(pid, _)] => format!("{} of {}", holder.name, named(*pid)),
        several => format!("{} of {} processes", holder.name, several.len()),
    }
}

fn holder_sentence(incident: &Incident) -> Option<String> {
    let Some((holder, percent)) = main_holder(incident) else {
        return incident.holders.is_empty().then(|| "What held the memory is unknown.".to_owned());
    };
    let amount = bytes_within(holder.bytes, holder.bytes_plus_minus);
    let surely_bytes = holder.bytes.saturating_sub(holder.bytes_plus_minus);
    // Blocks count where they are written, and may be much larger.
    let held = match whole_bytes(incident).is_some_and(|whole| surely_bytes > whole) {
        true => "had allocated (only what is written counts)",
        false => "held",
    };
    let mut text = format!("{percent} % of it: {} {held} {amount}", in_process(holder, incident));
    if let (Some(rate), Some(span)) = (holder.bytes_per_minute, holder.change_ns)
        && rate > 0
    {
        text += &format!(", {} a minute more for {}", bytes(rate.unsigned_abs()), span_text(span));
    }
    if let Some(path) = &holder.held_by {
        text += &format!("; held by {path}");
    }
    Some(text + ".")
}

/// Parts of the group's memory outside of processes' own memory: name and bytes.
fn group_parts(group: &GroupFacts) -> [(&'static str, u64); 5] {
    [
        ("files", group.file_bytes),
        ("tmpfs and shared memory", group.shared_memory_bytes),
        ("socket buffers", group.socket_bytes),
        ("the kernel's memory for it (sockets, page tables, names of files)", group.kernel_bytes),
        ("swapped out", group.swapped_bytes),
    ]
}

fn rest_sentence(incident: &Incident) -> Option<String> {
    let main = main_holder(incident).map(|(holder, _)| holder);
    let is_main =
        |name: &str| main.is_some_and(|main| main.kind != HolderKind::Function && main.name == name);
    let mut parts: Vec<(String, u64)> = incident
        .holders
        .iter()
        .skip(usize::from(main.is_some()))
        .filter(|holder| holder.kind != HolderKind::Group)
        .map(|holder| (in_process(holder, incident), holder.bytes))
        .collect();
    let group = incident.group.as_ref().filter(|_| incident.cause.kind.is_of_group());
    if let Some(group) = group {
        let named = group_parts(group).into_iter().filter(|(name, _)| !is_main(name));
        parts.extend(named.map(|(name, amount)| (name.to_owned(), amount)));
    }
    parts.extend(
        group.and_then(|_| unexplained(incident)).map(|amount| ("in no recorded block".to_owned(), amount)),
    );
    parts.retain(|(_, amount)| *amount >= TOLD_BYTES);
    parts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    parts.truncate(PARTS_MAX);
    if parts.is_empty() {
        return None;
    }
    let texts: Vec<String> =
        parts.iter().map(|(name, amount)| format!("{name} {}", bytes(*amount))).collect();
    Some(format!("The rest: {}.", texts.join(", ")))
}

/// Anonymous memory that no holder explains: freed and kept by malloc, or allocated before the
/// recording. `None`: unknown.
fn unexplained(incident: &Incident) -> Option<u64> {
    let group = incident.group.as_ref()?;
    let explained: u64 = incident
        .holders
        .iter()
        .filter(|holder| holder.kind != HolderKind::Group)
        .map(|holder| holder.bytes)
        .fold(0, u64::saturating_add);
    Some(group.anonymous_bytes.saturating_sub(explained))
}

fn processes_sentence(incident: &Incident) -> Option<String> {
    let group = incident.group.as_ref()?;
    let all = &group.processes;
    if all.len() < 2 {
        return None;
    }
    let named: Vec<String> = all
        .iter()
        .take(PARTS_MAX)
        .map(|process| format!("{} ({}) {}", process.name, process.pid, bytes(process.rss_bytes)))
        .collect();
    let more = all.len().saturating_sub(named.len());
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let path = group.limited_group.as_ref().unwrap_or(&group.path);
    Some(format!(
        "Resident of the {} processes of {path}, as last read: {}{more}.",
        all.len(),
        named.join(", ")
    ))
}

fn climb_sentence(incident: &Incident) -> Option<String> {
    let last = incident.course.points().last()?;
    let from = incident.course.rising_since()?;
    let span = last.unix_ns.saturating_sub(from.unix_ns);
    let rise = last.held_bytes.saturating_sub(from.held_bytes);
    if rise < TOLD_BYTES {
        return None;
    }
    let is_start = incident
        .process
        .started_unix_ns
        .is_some_and(|started| from.unix_ns.saturating_sub(started) < span / 20 + 1_000_000_000);
    let since = if is_start { "the start at " } else { "" };
    let since = format!("{since}{}", clock_text(from.unix_ns, incident.time_unix_ns));
    let mut text = format!("Its memory had been growing since {since}, by {}", bytes(rise));
    let rate = incident.course.rate(from.unix_ns).filter(|&rate| rate > 0);
    let limit = incident.group.as_ref().and_then(|group| group.limit_bytes);
    if let (Some(rate), Some(limit), true) = (rate, limit, span >= CLIMB_NS_MIN) {
        let rate = rate as f64;
        if incident.kind == Kind::Death && incident.cause.group.is_some() {
            // The time that twice the limit would have lasted.
            let more_ns = limit as f64 / rate * MINUTE_NS;
            let until = incident.time_unix_ns.saturating_add(more_ns as u64);
            text += &format!(
                "; at that rate {} would have lasted until {}",
                bytes(limit.saturating_mul(2)),
                clock_text(until, incident.time_unix_ns)
            );
        }
    }
    Some(text + ".")
}

fn company_sentence(incident: &Incident) -> Option<String> {
    let (first, rest) = incident.ended_with.split_first()?;
    let others = match rest.len() {
        0 => format!("{} ({})", first.name, first.pid),
        more => format!("{} ({}) and {more} more", first.name, first.pid),
    };
    Some(format!("With it ended: {others}."))
}

#[cfg(test)]
mod tests;
