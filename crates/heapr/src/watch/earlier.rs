//! Incidents of the time in which no watcher ran, from the journal of the last one.

use std::path::{Path, PathBuf};

use heapr_incident::{
    Course, Ending, GroupFacts, GroupProcess, Incident, Journal, JournalGroup, JournalProcess, Levels, More,
    unix_ns,
};
use heapr_proc::{GroupFolder, is_alive, start_ticks};

use super::dead::{Dead, DeadsGroup, keep_largest};
use super::deaths::{Circumstances, Told, incidents};
use super::kills::Kills;
use super::recorded::Recorded;

/// Time before the journal's last writing from which kills of the log count, in microseconds: the
/// log's clock is another one.
const SLACK_US: u64 = 2_000_000;

/// Id of the machine's present run.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Makes the incidents of the processes that have ended since the journal was written.
pub(super) fn incidents_since(journal: &Journal, recorded: Recorded<'_>) -> Vec<Incident> {
    if journal.boot_id != boot_id() {
        tell!("heapr: the machine was restarted since the last watch: what ended before is not told");
        return Vec::new();
    }
    let is_dead = |process: &&JournalProcess| {
        let pid = process.process.pid;
        start_ticks(pid) != Some(process.start_ticks) || !is_alive(pid)
    };
    let dead: Vec<&JournalProcess> = journal.processes.iter().filter(is_dead).collect();
    let mut kills = Kills::open(true);
    kills.read();
    let not_read = kills.not_read.clone();
    let mut groups: Vec<Option<String>> = dead.iter().map(|process| process.process.group.clone()).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut found = Vec::new();
    for path in groups {
        let group = journal.groups.iter().find(|group| Some(&group.path) == path.as_ref());
        let of_journal = group.map(|group| of_group(group, journal));
        let of_path = dead.iter().filter(|process| process.process.group == path);
        let told = of_path.map(|process| Told {
            dead: of_process(process, journal),
            kill: kills.take(process.process.pid, journal.written_us.saturating_sub(SLACK_US)),
        });
        let circumstances =
            Circumstances { group: of_journal.as_ref(), recorded, log_not_read: not_read.as_deref() };
        found.extend(incidents(told.collect(), &circumstances));
    }
    found
}

fn of_process(process: &JournalProcess, journal: &Journal) -> Dead {
    Dead {
        named: process.process.clone(),
        ending: Ending::Unknown,
        time_unix_ns: unix_ns(),
        not_before_unix_ns: Some(journal.written_unix_ns),
        account: process.account.clone(),
        ..Dead::default()
    }
}

fn of_group(group: &JournalGroup, journal: &Journal) -> DeadsGroup {
    let levels: Vec<More> = match GroupFolder::named(&group.path) {
        Some(folder) => {
            let mut levels = Levels::of(&folder);
            levels.start_from(&group.counters);
            levels.more()
        }
        None => Vec::new(),
    };
    let members =
        journal.processes.iter().filter(|process| process.process.group.as_ref() == Some(&group.path));
    let processes = members.clone().map(|process| GroupProcess {
        pid: process.process.pid,
        name: process.process.name.clone(),
        rss_bytes: process.process.rss_bytes.unwrap_or(0),
        is_recorded: true,
    });
    let events = levels.first().map(|own| own.events).unwrap_or_default();
    let mut facts = GroupFacts { processes: processes.collect(), events, ..group.facts.clone() };
    keep_largest(&mut facts.processes);
    let accounts = members.filter_map(|process| process.account.clone()).collect();
    let course: Course = group.course.clone();
    DeadsGroup { facts, course, levels, accounts }
}

/// Path for a recording that a lost recorder has left.
pub(super) fn left_path(path: &Path) -> PathBuf {
    path.with_extension("before.heapr")
}
