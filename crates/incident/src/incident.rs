//! The incident: its parts, and their form in a file.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::climb::Trigger;
use crate::course::Course;
use crate::ending::Ending;
use crate::group_events::GroupEvents;

/// Name and version of the format.
pub const SCHEMA: &str = "heapr.incident/1";

/// Time of the wall clock, ns since 1970.
pub type WallTime = u64;

/// Kind of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Process that has ended.
    #[default]
    Death,
    /// Process that lives, near its limit.
    Warning,
}

impl Kind {
    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Death => "death",
            Self::Warning => "warning",
        }
    }
}

/// Process of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessNamed {
    /// Process id in the watcher's namespace.
    pub pid: u32,
    /// Name by which the program was started.
    pub name: String,
    /// Path of the program.
    pub executable: String,
    /// Path of the memory group, from `/` on.
    pub group: Option<String>,
    /// Id of the container, by the group's path.
    pub container: Option<String>,
    /// Name of the pod or host, by the process's environment.
    pub host: Option<String>,
    /// Systemd unit, by the group's path.
    pub unit: Option<String>,
    /// Start of the process.
    pub started_unix_ns: Option<WallTime>,
    /// Resident bytes at the last reading, or as the kernel killed it, if its log tells them.
    pub rss_bytes: Option<u64>,
}

/// Process of a group, with its share of the memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupProcess {
    /// Process id.
    pub pid: u32,
    /// Name of the program.
    pub name: String,
    /// Resident bytes at the last reading before the incident, or as the kernel killed it.
    pub rss_bytes: u64,
    /// Whether the process was recorded.
    pub is_recorded: bool,
}

/// A limit that was lowered while its group was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lowered {
    /// Limit before, in bytes.
    pub from_bytes: u64,
    /// Last reading of the limit before.
    pub after_unix_ns: WallTime,
}

/// Memory of the group at the last reading before the incident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupFacts {
    /// Path of the group, from `/` on.
    pub path: String,
    /// Version of control groups.
    pub version: u32,
    /// Time of the reading.
    pub read_unix_ns: WallTime,
    /// Hard limit that decides, in bytes.
    pub limit_bytes: Option<u64>,
    /// Group that has the limit.
    pub limited_group: Option<String>,
    /// Limit before, if it was lowered.
    pub lowered: Option<Lowered>,
    /// Bytes charged to the group.
    pub usage_bytes: Option<u64>,
    /// Anonymous memory.
    pub anonymous_bytes: u64,
    /// Pages of files.
    pub file_bytes: u64,
    /// Shared memory and files of tmpfs.
    pub shared_memory_bytes: u64,
    /// Socket buffers that the kernel counts by themselves.
    pub socket_bytes: u64,
    /// Other kernel memory of the group.
    pub kernel_bytes: u64,
    /// Swapped-out memory.
    pub swapped_bytes: u64,
    /// Events while the group was watched.
    pub events: GroupEvents,
    /// Processes of the group, the largest first.
    pub processes: Vec<GroupProcess>,
}

impl GroupFacts {
    /// Limit before, if that of the same group was larger at the reading before. It is forgotten
    /// once the limit is as large as it was.
    #[must_use]
    pub fn lowered_since(&self, before: &Self) -> Option<Lowered> {
        let (limit_bytes, earlier_bytes) = (self.limit_bytes?, before.limit_bytes?);
        if self.limited_group != before.limited_group {
            return None;
        }
        let is_lower = limit_bytes < earlier_bytes;
        let now =
            is_lower.then_some(Lowered { from_bytes: earlier_bytes, after_unix_ns: before.read_unix_ns });
        now.or(before.lowered.filter(|lowered| lowered.from_bytes > limit_bytes))
    }
}

/// Kind of a holder of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// Function of the program, by the recorded live blocks.
    #[default]
    Function,
    /// Class of a process's resident memory.
    Class,
    /// Part of the group's memory outside of processes' own memory.
    Group,
}

/// Holder of memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// Kind of the holder.
    pub kind: HolderKind,
    /// Name in sentences.
    pub name: String,
    /// Held bytes.
    pub bytes: u64,
    /// Half of the 95 % interval; 0: counted.
    pub bytes_plus_minus: u64,
    /// Number of blocks.
    pub block_count: Option<u64>,
    /// Change in bytes a minute; `None`: unknown.
    pub bytes_per_minute: Option<i64>,
    /// Time over which the change was seen, ns.
    pub change_ns: Option<u64>,
    /// Path from a root that holds the memory, if a graph was taken.
    pub held_by: Option<String>,
    /// Processes that hold it, with their bytes; empty: the incident's own.
    pub processes: Vec<(u32, u64)>,
}

/// Line of an account of resident memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountLine {
    /// Key of the class, as in `heapr.explain/1`.
    pub class: String,
    /// Name of the class in texts.
    pub label: String,
    /// Resident bytes.
    pub bytes: u64,
}

/// Account of a process's resident memory before the incident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Process id.
    pub pid: u32,
    /// Time of the reading.
    pub read_unix_ns: WallTime,
    /// Resident bytes.
    pub rss_bytes: u64,
    /// Lines, the largest first.
    pub lines: Vec<AccountLine>,
}

/// Recording that the holders are read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// File beside the incident, if a copy was made.
    pub file: Option<String>,
    /// Rate of sampling; `None`: all events were recorded.
    pub sample: Option<String>,
    /// Live bytes of the process.
    pub live_bytes: u64,
    /// Half of the 95 % interval; 0: counted.
    pub live_bytes_plus_minus: u64,
    /// Events that are missing, at least.
    pub events_lost: u64,
    /// Beginning of the recording of the process.
    pub from_unix_ns: Option<WallTime>,
}

/// Incident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Incident {
    /// Name and version of the format.
    pub schema: String,
    /// Number in its folder, from 1.
    pub number: u32,
    /// Kind of the incident.
    pub kind: Kind,
    /// Time of the death or of the trigger.
    pub time_unix_ns: WallTime,
    /// Earliest possible time of a death while no watcher ran.
    pub not_before_unix_ns: Option<WallTime>,
    /// Process that died, or the largest one of the group.
    pub process: ProcessNamed,
    /// Other processes of the group that ended with it.
    pub ended_with: Vec<GroupProcess>,
    /// End of the process; `None`: it lives.
    pub ending: Option<Ending>,
    /// Cause.
    pub cause: Cause,
    /// Reason for a warning.
    pub trigger: Option<Trigger>,
    /// Memory of the group.
    pub group: Option<GroupFacts>,
    /// Holders of memory, the largest first.
    pub holders: Vec<Holder>,
    /// Account of the process's resident memory.
    pub account: Option<Account>,
    /// Memory over time.
    pub course: Course,
    /// Recording of the process.
    pub recording: Option<Recording>,
    /// Time of a warning that this death followed.
    pub warned_unix_ns: Option<WallTime>,
    /// Facts that are unknown, and why.
    pub unknown: Vec<String>,
    /// Report in sentences, the first one first.
    pub sentences: Vec<String>,
}
