//! Holders of a group's memory: functions, classes of resident memory, and the kernel's part.

use heapr_incident::{Account, GroupFacts, Holder, HolderKind, Incident, unix_ns};

use super::holders::{Ended, Functions, functions};
use super::recorded::Recorded;

/// Classes of resident memory that recorded blocks explain.
const RECORDED: [&str; 9] = [
    "live_blocks",
    "headers_rounding",
    "free_whole_pages",
    "free_pinned",
    "caches_tops",
    "glibc_heap",
    "allocator_live",
    "allocator_slack",
    "other_allocator",
];
/// Classes that are no holder: pages of files, which the kernel can take back or counts elsewhere.
const OF_FILES: [&str; 5] = ["code", "read_only_data", "files", "shared_memory", "kernel"];
/// Name of memory of an unknown owner in a recorded process, beyond its recorded blocks.
const OWN_MAPPINGS: &str = "memory that it mapped by itself, in no recorded block";
/// Largest number of holders of an incident.
const HOLDERS_MAX: usize = 20;
/// Time by which clocks of a start and of an end may differ, ns.
const SLACK_NS: u64 = 10_000_000_000;
/// Smallest amount of a class or part.
const BYTES_MIN: u64 = 1 << 20;

/// Adds the holders to an incident. `is_dead`: the holders are those at the end of that process.
pub(super) fn add_holders(
    incident: &mut Incident,
    recorded: Recorded<'_>,
    accounts: &[Account],
    is_dead: bool,
) {
    let own = incident.process.pid;
    let mut pids = vec![own];
    // A crash or an exit is of this process alone.
    let is_of_group = incident.cause.kind.is_of_group();
    let with: Vec<u32> = incident.ended_with.iter().map(|process| process.pid).collect();
    if is_of_group {
        let of_group = incident.group.iter().flat_map(|group| &group.processes).map(|process| process.pid);
        for pid in of_group.chain(with.iter().copied()) {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
    }
    // A process that no scan has seen began after the last scan.
    let began_unix_ns = incident.process.started_unix_ns.unwrap_or(incident.time_unix_ns);
    let age_ns = unix_ns().saturating_sub(began_unix_ns).saturating_add(SLACK_NS);
    let dead = is_dead.then_some(Ended { pid: own, age_ns, with: &with });
    let found = match functions(recorded, &pids, dead, incident.time_unix_ns) {
        Ok(found) => found,
        Err(error) => {
            incident.unknown.push(format!("the recording could not be read: {error:#}"));
            Functions::default()
        }
    };
    let mut holders = found.holders;
    for account in accounts {
        let is_recorded = found.pids.contains(&account.pid);
        let most = found.most_bytes.iter().find(|(pid, _)| *pid == account.pid);
        holders.extend(classes(account, is_recorded, most.map(|(_, bytes)| *bytes)));
    }
    let group = incident.group.as_ref().filter(|_| is_of_group);
    holders.extend(group.into_iter().flat_map(parts));
    let is_told = |pid: u32| found.pids.contains(&pid) || accounts.iter().any(|account| account.pid == pid);
    holders.extend(group.into_iter().flat_map(|group| others(group, is_told)));
    holders.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
    holders.truncate(HOLDERS_MAX);
    incident.holders = holders;
    if found.pids.contains(&own) {
        incident.recording = Some(found.recording);
    } else {
        incident
            .unknown
            .push(format!("process {own} is not in the recording: which functions held its memory"));
    }
    for process in incident.group.iter_mut().flat_map(|group| &mut group.processes) {
        process.is_recorded = found.pids.contains(&process.pid);
    }
}

/// Classes of a process's resident memory that no recorded block explains. `recorded_bytes`: those
/// of its recorded blocks, at most; `None`: unknown.
fn classes(account: &Account, is_recorded: bool, recorded_bytes: Option<u64>) -> Vec<Holder> {
    let is_unsure = |class: &str| class == "unknown" && recorded_bytes.is_none();
    let is_left_out = |class: &str| {
        OF_FILES.contains(&class) || is_recorded && (RECORDED.contains(&class) || is_unsure(class))
    };
    // Recorded blocks may lie in memory of an unknown owner. What is left beyond them is told:
    // compilers and interpreters map their heaps by themselves. CPython's arenas are told, as
    // samples leave its small objects out.
    let holder = |line: &heapr_incident::AccountLine| {
        let (name, bytes) = match recorded_bytes.filter(|_| is_recorded && line.class == "unknown") {
            Some(recorded_bytes) => (OWN_MAPPINGS.to_owned(), line.bytes.saturating_sub(recorded_bytes)),
            None => (line.label.clone(), line.bytes),
        };
        let processes = vec![(account.pid, bytes)];
        Holder { kind: HolderKind::Class, name, bytes, processes, ..Holder::default() }
    };
    let lines = account.lines.iter().filter(|line| !is_left_out(&line.class));
    lines.map(holder).filter(|holder| holder.bytes >= BYTES_MIN).collect()
}

/// Parts of a group's memory outside of its processes.
fn parts(group: &GroupFacts) -> Vec<Holder> {
    let parts = [
        ("tmpfs and shared memory", group.shared_memory_bytes),
        ("socket buffers", group.socket_bytes),
        ("the kernel's memory for it (sockets, page tables, names of files)", group.kernel_bytes),
    ];
    let large = parts.into_iter().filter(|(_, bytes)| *bytes >= BYTES_MIN);
    let holder = |(name, bytes): (&str, u64)| Holder {
        kind: HolderKind::Group,
        name: name.to_owned(),
        bytes,
        ..Holder::default()
    };
    large.map(holder).collect()
}

/// Processes whose memory is neither recorded nor divided by class.
fn others(group: &GroupFacts, is_told: impl Fn(u32) -> bool) -> Vec<Holder> {
    let unknown =
        group.processes.iter().filter(|process| !is_told(process.pid) && process.rss_bytes >= BYTES_MIN);
    let holder = |process: &heapr_incident::GroupProcess| Holder {
        kind: HolderKind::Class,
        name: "resident memory".to_owned(),
        bytes: process.rss_bytes,
        processes: vec![(process.pid, process.rss_bytes)],
        ..Holder::default()
    };
    unknown.map(holder).collect()
}

#[cfg(test)]
mod tests {
    use heapr_incident::AccountLine;

    use super::*;

    fn account() -> Account {
        let line = |class: &str, mib: u64| AccountLine {
            class: class.to_owned(),
            label: class.to_owned(),
            bytes: mib << 20,
        };
        let lines = vec![line("glibc_heap", 40), line("v8_heap", 30), line("code", 20), line("unknown", 5)];
        Account { pid: 7, lines, ..Account::default() }
    }

    #[test]
    fn classes_that_recorded_blocks_explain_are_no_holders_of_a_recorded_process() {
        let found = |is_recorded, recorded_bytes| {
            let holders = classes(&account(), is_recorded, recorded_bytes).into_iter();
            holders.map(|holder| (holder.name, holder.bytes >> 20)).collect::<Vec<_>>()
        };
        let named = |name: &str, mib: u64| (name.to_owned(), mib);
        assert_eq!(found(true, Some(5 << 20)), [named("v8_heap", 30)]);
        assert_eq!(found(true, Some(2 << 20)), [named("v8_heap", 30), named(OWN_MAPPINGS, 3)]);
        assert_eq!(found(true, None), [named("v8_heap", 30)], "its blocks may lie in it");
        assert_eq!(found(false, None), [named("glibc_heap", 40), named("v8_heap", 30), named("unknown", 5)]);
    }

    #[test]
    fn parts_of_the_kernel_are_named_from_a_mebibyte_on() {
        let group = GroupFacts { shared_memory_bytes: 50 << 20, socket_bytes: 100, ..GroupFacts::default() };
        let found = parts(&group);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].kind), ("tmpfs and shared memory", HolderKind::Group));
    }
}
