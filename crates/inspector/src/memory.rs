//! Amount of memory that a process can still allocate: limited by the machine and by its control
//! groups.

use heapr_proc::{Fields, memory_limits};

/// Nearest memory limit of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRoom {
    /// Number of bytes that the process can allocate up to the limit.
    pub free_bytes: u64,
    /// Origin of the limit.
    pub limited_by: MemoryLimit,
}

/// Limit beyond which a process is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Memory and swap of the machine.
    Machine,
    /// Control group.
    ControlGroup {
        /// Path of the group below the root of the hierarchy.
        path: String,
        /// Limit of the group, in bytes.
        limit_bytes: u64,
    },
}

/// Returns the resident memory of a process, in bytes.
pub fn resident_bytes(pid: u32) -> u64 {
    of_status(pid, "VmRSS")
}

/// Returns the largest resident memory that a process has had, in bytes.
pub(crate) fn most_resident_bytes(pid: u32) -> u64 {
    of_status(pid, "VmHWM")
}

/// Returns the resident memory of a process without a file, in bytes: its heaps, stacks and
/// buffers.
pub fn anonymous_bytes(pid: u32) -> u64 {
    of_status(pid, "RssAnon")
}

fn of_status(pid: u32, field: &str) -> u64 {
    Fields::of_process(pid).ok().and_then(|status| status.bytes(field)).unwrap_or(0)
}

/// Returns the nearest memory limit of a process.
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
