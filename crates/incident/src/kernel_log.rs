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
    /// Memory of the machine, or of the nodes that a process may use.
    Machine,
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
}

/// Reader of `/dev/kmsg`.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    /// Group whose processes the kernel says to kill together, from the last line about it.
    whole_group: Option<String>,
}

/// Largest size of a record: the kernel's own bound, with its dictionary.
const RECORD_BYTES_MAX: usize = 8192;
/// Largest number of records read at once; further ones are read the next time.
const RECORDS_MAX: usize = 65_536;

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
        Ok(Self { file, whole_group: None })
    }

    /// The log's file, to be polled.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
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
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        kills
    }

    /// Reads a record: `priority,number,time,flags;text`.
    fn add(&mut self, record: &str, kills: &mut Vec<KernelKill>) {
        let Some((header, text)) = record.split_once(';') else { return };
        let text = text.lines().next().unwrap_or_default();
        let Some(time_us) = header.split(',').nth(2).and_then(|time| time.parse().ok()) else { return };
        if let Some(group) = whole_group(text) {
            self.whole_group = Some(group.to_owned());
        } else if let Some(kill) = chosen(time_us, text) {
            self.whole_group = None;
            kills.push(kill);
        } else if let Some(mut kill) = killed(time_us, text) {
            let is_known = kills.iter().any(|known| known.pid == kill.pid);
            kill.is_of_whole_group = self.whole_group.is_some();
            kill.limited_group.clone_from(&self.whole_group);
            match kills.iter_mut().find(|known| known.pid == kill.pid) {
                Some(known) => known.is_of_whole_group |= kill.is_of_whole_group,
                None if !is_known => kills.push(kill),
                None => {}
            }
        }
    }
}

/// Group of `Tasks in GROUP are going to be killed due to memory.oom.group set`.
fn whole_group(text: &str) -> Option<&str> {
    text.strip_prefix("Tasks in ")?.strip_suffix(" are going to be killed due to memory.oom.group set")
}

/// Parses `oom-kill:constraint=…,nodemask=…,cpuset=…,oom_memcg=…,task_memcg=…,task=…,pid=…,uid=…`.
/// Groups and names may contain commas, so that keys are looked for from the end.
fn chosen(time_us: u64, text: &str) -> Option<KernelKill> {
    let facts = text.strip_prefix("oom-kill:constraint=")?;
    let (constraint, facts) = facts.split_once(',')?;
    let (facts, _) = facts.rsplit_once(",uid=")?;
    let (facts, pid) = facts.rsplit_once(",pid=")?;
    let (facts, name) = facts.rsplit_once(",task=")?;
    let (facts, group) = facts.rsplit_once(",task_memcg=")?;
    let limited = facts.rsplit_once(",oom_memcg=").map(|(_, group)| group.to_owned());
    let scope = if constraint == "CONSTRAINT_MEMCG" { Scope::Group } else { Scope::Machine };
    Some(KernelKill {
        time_us,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        scope,
        limited_group: limited,
        group: Some(group.to_owned()),
        is_of_whole_group: false,
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
    let (name, _) = rest.rsplit_once(") total-vm:")?;
    Some(KernelKill {
        time_us,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        scope,
        limited_group: None,
        group: None,
        is_of_whole_group: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &[&str]) -> Vec<KernelKill> {
        let mut log = KernelLog { file: File::open("/dev/null").unwrap(), whole_group: None };
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
    }

    #[test]
    fn a_kill_for_the_machine_and_one_without_its_first_line_are_told() {
        let kills = read(&[
            "6,1,5,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,task=web,pid=7,uid=0\n",
            "3,2,6,-;Memory cgroup out of memory: Killed process 8 (a) b) total-vm:1kB, anon-rss:1kB\n",
        ]);
        assert_eq!((kills[0].scope, kills[0].limited_group.as_deref()), (Scope::Machine, None));
        assert_eq!((kills[1].pid, kills[1].name.as_str(), kills[1].scope), (8, "a) b", Scope::Group));
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
                "6,1,5,-;b: Killed process 1 (x) total-vm:1"
            ])
            .is_empty()
        );
    }
}
