//! How much memory a process may still take: the machine's, and what its control groups leave it.

use heapr_proc::{Fields, memory_limits};

/// A limit that is nearer than the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRoom {
    /// How many bytes the process can take until something happens.
    pub free_bytes: u64,
    /// What sets the limit.
    pub limited_by: MemoryLimit,
}

/// What ends a process that takes more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The memory and swap of the machine.
    Machine,
    /// A control group.
    ControlGroup {
        /// Its path below the root of the hierarchy.
        path: String,
        /// Its limit.
        limit_bytes: u64,
    },
}

/// The resident memory of a process.
pub fn resident_bytes(pid: u32) -> u64 {
    of_status(pid, "VmRSS")
}

/// The most resident memory that a process has had.
pub(crate) fn most_resident_bytes(pid: u32) -> u64 {
    of_status(pid, "VmHWM")
}

/// The resident memory of a process that is no file's: its heaps, stacks and buffers.
pub fn anonymous_bytes(pid: u32) -> u64 {
    of_status(pid, "RssAnon")
}

fn of_status(pid: u32, field: &str) -> u64 {
    Fields::of_process(pid).ok().and_then(|status| status.bytes(field)).unwrap_or(0)
}

/// The nearest limit of a process.
pub fn memory_room(pid: u32) -> MemoryRoom {
    let info = Fields::of_machine();
    let free_bytes = ["MemAvailable", "SwapFree"].iter().filter_map(|field| info.bytes(field)).sum();
    let of_machine = MemoryRoom { free_bytes, limited_by: MemoryLimit::Machine };
    let nearest =
        memory_limits(pid).into_iter().filter(|limit| limit.is_hard).min_by_key(|limit| limit.free_bytes);
    match nearest {
        Some(group) if group.free_bytes < of_machine.free_bytes => MemoryRoom {
            free_bytes: group.free_bytes,
            limited_by: MemoryLimit::ControlGroup { path: group.path, limit_bytes: group.limit_bytes },
        },
        _ => of_machine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_room() {
        let room = memory_room(std::process::id());
        assert!(room.free_bytes > 0, "{room:?}");
        assert!(resident_bytes(std::process::id()) > 100_000);
    }
}
