//! Kills for lack of memory in the kernel's log.
//!
//! The kernel writes two lines for a kill. The first one (`oom-kill:constraint=…`) names both
//! groups; the kernel leaves it out if it has written many. The second one (`… Killed process …`)
//! is always there. Process ids are those of the machine's first namespace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Memory that was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Limit of a control group.
    Group,
    /// Memory of the machine.
    Machine,
    /// Memory of the nodes that a process may use, by its cpuset or its memory policy.
    Nodes,
}

/// Kill that the log tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelKill {
    /// Time in microseconds since boot, of the log's clock.
    pub time_us: u64,
    /// Process id in the machine's first namespace.
    pub pid: u32,
    /// Name of the process's first thread.
    pub name: String,
    /// Memory that was used up.
    pub scope: Scope,
    /// Group whose limit was met, if the log tells it.
    pub limited_group: Option<String>,
    /// Group of the process, if the log tells it.
    pub group: Option<String>,
    /// Whether the group is set to be killed whole.
    pub is_of_whole_group: bool,
    /// Resident bytes as it was killed, if the log tells them.
    pub rss_bytes: Option<u64>,
}

/// Reader of `/dev/kmsg`.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    /// Last first line of a kill.
    chosen: Option<KernelKill>,
    /// Time at which the kernel said to kill a whole group, in microseconds.
    whole_us: Option<u64>,
    /// Whether records were overwritten before they were read, since that was asked last.
    has_lost: bool,
}

/// Largest size of a record: the kernel's own bound, with its dictionary.
const RECORD_BYTES_MAX: usize = 8192;
/// Largest number of records read at once; further ones are read the next time.
const RECORDS_MAX: usize = 65_536;
/// Time in which a whole group is killed, in microseconds.
const TOGETHER_US: u64 = 1_000_000;
/// Time between two records of one kill, at most; later the process id is another process's.
const SAME_US: u64 = 60_000_000;

impl KernelLog {
    /// Opens the log. `from_start`: records that are in it already are read, too.
    ///
    /// # Errors
    /// The log may not be read (`kernel.dmesg_restrict`, a container).
    pub fn open(from_start: bool) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg")?;
        if !from_start {
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Self { file, chosen: None, whole_us: None, has_lost: false })
    }

    /// The log's file, to be polled.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether records were overwritten before they were read, since the last call.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Reads the kills that have come since the last call.
    pub fn kills(&mut self) -> Vec<KernelKill> {
        let mut kills = Vec::new();
        let mut bytes = vec![0; RECORD_BYTES_MAX];
        for _ in 0..RECORDS_MAX {
            match self.file.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => self.add(&String::from_utf8_lossy(&bytes[..length]), &mut kills),
                // Records that were overwritten before they were read.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.has_lost = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        kills
    }

    /// Reads a record: `priority,number,time,flags;text`. Programs may write records, too: the
    /// kernel gives these another facility, which is the priority's upper part.
    fn add(&mut self, record: &str, kills: &mut Vec<KernelKill>) {
        let Some((header, text)) = record.split_once(';') else { return };
        let mut facts = header.split(',');
        let facility = facts.next().and_then(|priority| priority.parse::<u32>().ok()).map(|all| all >> 3);
        let Some(time_us) = facts.nth(1).and_then(|time| time.parse().ok()) else { return };
        if facility != Some(0) {
            return;
        }
        let text = unescaped(text.lines().next().unwrap_or_default());
        if is_whole_group(&text) {
            self.whole_us = Some(time_us);
        } else if let Some(kill) = chosen(time_us, &text) {
            self.whole_us = None;
            self.chosen = Some(kill.clone());
            kills.push(kill);
        } else if let Some(kill) = killed(time_us, &text) {
            self.add_killed(kill, kills);
        }
    }

    /// Adds a kill by its second line. Kills of a whole group share the group's first line.
    fn add_killed(&self, mut kill: KernelKill, kills: &mut Vec<KernelKill>) {
        let is_group = kill.scope == Scope::Group;
        let is_near = |time_us: u64| kill.time_us.abs_diff(time_us) < TOGETHER_US;
        let is_whole = self.whole_us.is_some_and(is_near);
        let first = self
            .chosen
            .as_ref()
            .filter(|first| is_whole && is_near(first.time_us) && (first.scope == Scope::Group) == is_group);
        kill.is_of_whole_group = is_whole;
        if let Some(first) = first {
            kill.scope = first.scope;
            kill.limited_group.clone_from(&first.limited_group);
        }
        let is_same =
            |known: &&mut KernelKill| known.pid == kill.pid && known.time_us.abs_diff(kill.time_us) < SAME_US;
        match kills.iter_mut().rev().find(is_same) {
            Some(known) => {
                known.is_of_whole_group |= is_whole;
                known.rss_bytes = known.rss_bytes.or(kill.rss_bytes);
            }
            None => kills.push(kill),
        }
    }
}

/// Text with the bytes that the kernel writes as `\xNN`: backslashes, controls, all but ASCII.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut place = 0;
    while let Some(&byte) = text.as_bytes().get(place) {
        let digits = text.get(place..place + 4).and_then(|part| part.strip_prefix("\\x"));
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(byte));
        place += if code.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the line says that a whole group is killed. The group is not always the limited one.
fn is_whole_group(text: &str) -> bool {
    text.starts_with("Tasks in ") && text.ends_with(" are going to be killed due to memory.oom.group set")
}

/// Parses `oom-kill:constraint=…,nodemask=…,cpuset=…,oom_memcg=…,task_memcg=…,task=…,pid=…,uid=…`.
/// Groups and names may contain commas, so that keys are looked for from the end. Groups are
/// unknown if a name contains one of the keys.
fn chosen(time_us: u64, text: &str) -> Option<KernelKill> {
    let facts = text.strip_prefix("oom-kill:constraint=")?;
    let (constraint, facts) = facts.split_once(',')?;
    let scope = match constraint {
        "CONSTRAINT_MEMCG" => Scope::Group,
        "CONSTRAINT_NONE" => Scope::Machine,
        "CONSTRAINT_CPUSET" | "CONSTRAINT_MEMORY_POLICY" => Scope::Nodes,
        _ => return None,
    };
    let (facts, _) = facts.rsplit_once(",uid=")?;
    let (facts, pid) = facts.rsplit_once(",pid=")?;
    let (groups, name) = facts.rsplit_once(",task=")?;
    let (before, group) = groups.rsplit_once(",task_memcg=")?;
    let is_clear = !groups.contains(",task=")
        && !before.contains(",task_memcg=")
        && groups.matches(",oom_memcg=").count() <= 1;
    let limited = before.rsplit_once(",oom_memcg=").map(|(_, group)| group);
    Some(KernelKill {
        time_us,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        scope,
        limited_group: limited.filter(|_| is_clear && scope == Scope::Group).map(str::to_owned),
        group: is_clear.then(|| group.to_owned()),
        is_of_whole_group: false,
        rss_bytes: None,
    })
}

/// Parses `Memory cgroup out of memory: Killed process PID (NAME) total-vm:…`.
fn killed(time_us: u64, text: &str) -> Option<KernelKill> {
    let (before, facts) = text.split_once(": Killed process ")?;
    let scope = match before {
        "Memory cgroup out of memory" => Scope::Group,
        _ if before.starts_with("Out of memory") => Scope::Machine,
        _ => return None,
    };
    let (pid, rest) = facts.split_once(" (")?;
    let (name, sizes) = rest.rsplit_once(") total-vm:")?;
    let parts = ["anon-rss:", "file-rss:", "shmem-rss:"].map(|part| {
        let kilobytes = sizes.split_once(part)?.1.split_once("kB")?.0;
        kilobytes.parse::<u64>().ok()?.checked_mul(1024)
    });
    let rss_bytes = parts.into_iter().try_fold(0_u64, |sum, part| sum.checked_add(part?));
    Some(KernelKill {
        time_us,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        scope,
        limited_group: None,
        group: None,
        is_of_whole_group: false,
        rss_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &[&str]) -> Vec<KernelKill> {
        let mut log = KernelLog {
            file: File::open("/dev/null").unwrap(),
            chosen: None,
            whole_us: None,
            has_lost: false,
        };
        let mut kills = Vec::new();
        records.iter().for_each(|record| log.add(record, &mut kills));
        kills
    }

    #[test]
    fn a_kill_in_a_group_names_both_groups() {
        let kills = read(&[
            "6,100,59557386121,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/pod,task_memcg=/pod/a,b,task=le,ak,pid=14022,uid=0\n",
            "3,101,59557386133,-;Memory cgroup out of memory: Killed process 14022 (le,ak) total-vm:150832kB, anon-rss:65024kB, file-rss:3428kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:0\n",
        ]);
        let [kill] = kills.as_slice() else { panic!("{kills:?}") };
        assert_eq!((kill.pid, kill.name.as_str(), kill.scope), (14022, "le,ak", Scope::Group));
        assert_eq!((kill.limited_group.as_deref(), kill.group.as_deref()), (Some("/pod"), Some("/pod/a,b")));
        assert!(!kill.is_of_whole_group && kill.time_us == 59_557_386_121);
        assert_eq!(kill.rss_bytes, Some((65_024 + 3428) << 10));
    }

    #[test]
    fn a_kill_for_the_machine_and_one_without_its_first_line_are_told() {
        let kills = read(&[
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,task=web,pid=7,uid=0\n",
            "3,2,6,-;Memory cgroup out of memory: Killed process 8 (a) b) total-vm:1kB, anon-rss:1kB\n",
        ]);
        assert_eq!((kills[0].scope, kills[0].limited_group.as_deref()), (Scope::Machine, None));
        assert_eq!((kills[1].pid, kills[1].name.as_str(), kills[1].scope), (8, "a) b", Scope::Group));
        assert_eq!((kills[0].rss_bytes, kills[1].rss_bytes), (None, None), "a part is missing");
    }

    #[test]
    fn processes_of_a_group_that_is_killed_whole_are_told() {
        let kills = read(&[
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/g,task_memcg=/g,task=web,pid=7,uid=0\n",
            "3,2,6,-;Memory cgroup out of memory: Killed process 7 (web) total-vm:1kB\n",
            "6,3,7,-;Tasks in /g are going to be killed due to memory.oom.group set\n",
            "3,4,8,-;Memory cgroup out of memory: Killed process 7 (web) total-vm:1kB\n",
            "3,5,9,-;Memory cgroup out of memory: Killed process 9 (side) total-vm:1kB\n",
        ]);
        assert_eq!(
            kills.iter().map(|kill| (kill.pid, kill.is_of_whole_group)).collect::<Vec<_>>(),
            [(7, true), (9, true)]
        );
        assert_eq!(kills[1].limited_group.as_deref(), Some("/g"));
    }

    #[test]
    fn other_records_and_broken_ones_are_no_kills() {
        assert!(
            read(&[
                "",
                "6,1,5",
                "6,1,x,-;oom-kill:constraint=A",
                "6,1,5,-;oom-kill:constraint=A,pid=x,uid=0",
                "6,1,5,-;b: Killed process 1 (x) total-vm:1",
                // A program has written it.
                "12,1,5,-;Out of memory: Killed process 1 (x) total-vm:1kB"
            ])
            .is_empty()
        );
    }
    #[test]
    fn names_that_hold_keys_leave_the_groups_unknown_and_escapes_are_read() {
        let kills = read(&[
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a\\x5cx2db,task_memcg=/a\\x5cx2db,task=web,pid=7,uid=0\n",
            "6,2,6,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/g,task_memcg=/g,task=,task=x,pid=8,uid=0\n",
            "6,3,7,-;oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/g,task=web,pid=9,uid=0\n",
        ]);
        assert_eq!(kills[0].limited_group.as_deref(), Some("/a\\x2db"));
        assert_eq!(
            (kills[1].pid, kills[1].limited_group.as_deref(), kills[1].group.as_deref()),
            (8, None, None)
        );
        assert_eq!((kills[2].scope, kills[2].group.as_deref()), (Scope::Nodes, Some("/g")));
    }

    #[test]
    fn a_later_kill_is_no_part_of_a_group_that_was_killed_whole() {
        let kills = read(&[
            "6,1,5,-;Tasks in /g are going to be killed due to memory.oom.group set\n",
            "3,2,6,-;Memory cgroup out of memory: Killed process 7 (web) total-vm:1kB\n",
            "3,3,90000000,-;Memory cgroup out of memory: Killed process 7 (web) total-vm:1kB\n",
        ]);
        let facts: Vec<_> =
            kills.iter().map(|kill| (kill.is_of_whole_group, kill.limited_group.clone())).collect();
        assert_eq!(facts, [(true, None), (false, None)]);
    }
}
