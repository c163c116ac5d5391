//! Computes how much memory is left, and what limits it: the machine, control groups, limits of a
//! process.
//!
//! Shared memory is charged to the process that touches a page first. A group without any left gets
//! one of its processes killed. So the recorder touches the buffers, after checking here.

use heapr_proc::machine::is_memory_promised_strictly;
use heapr_proc::{Fields, memory_limits, soft_limit};

/// Memory that a limit leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// Description of the limit.
    pub(crate) of: String,
    /// True for the limit of the address space, used or not.
    pub(crate) is_of_address_space: bool,
}

impl Room {
    /// Creates a value for a limit that is not of the address space.
    pub(crate) fn of(bytes: u64, of: impl Into<String>) -> Self {
        Self { bytes, of: of.into(), is_of_address_space: false }
    }
}

/// Memory that a process can still be charged for; `None` if no readable limit applies.
pub(crate) fn of_process(pid: u32) -> Option<Room> {
    let info = Fields::of_machine();
    let available = info.bytes("MemAvailable").map(|bytes| Room::of(bytes, "the machine"));
    // Only with strict overcommit, where the kernel promises no more than there is.
    let promised = is_memory_promised_strictly().then(|| {
        let bytes = info.bytes("CommitLimit")?.saturating_sub(info.bytes("Committed_AS")?);
        Some(Room::of(bytes, "the machine's limit of promised memory (vm.overcommit_memory=2)"))
    });
    let of_groups = memory_limits(pid)
        .into_iter()
        .map(|limit| Room::of(limit.free_bytes, format!("the control group {}", limit.folder.display())));
    available.into_iter().chain(promised.flatten()).chain(of_groups).min_by_key(|room| room.bytes)
}

/// Smallest rest of a process's own limits of address space and private memory.
pub(crate) fn of_limits(pid: u32) -> Option<Room> {
    of_each_limit(pid).into_iter().min_by_key(|room| room.bytes)
}

/// Rest of each of these limits that the process has.
pub(crate) fn of_each_limit(pid: u32) -> Vec<Room> {
    let Ok(status) = Fields::of_process(pid) else { return Vec::new() };
    let kinds = [("Max address space", "VmSize", "RLIMIT_AS"), ("Max data size", "VmData", "RLIMIT_DATA")];
    let room = |(limit, used, of): (&str, &str, &str)| {
        let bytes = soft_limit(pid, limit)?.saturating_sub(status.bytes(used)?);
        let is_of_address_space = used == "VmSize";
        Some(Room { bytes, of: format!("the process's limit of memory ({of})"), is_of_address_space })
    };
    kinds.into_iter().filter_map(room).collect()
}
