//! How much memory is left, and by what: the machine, control groups, limits of a process.
//!
//! Shared memory belongs to whoever touches a page first. A group that has none left gets one of
//! its processes killed. So the recorder touches the buffers, after it has asked here.

use heapr_proc::machine::is_memory_promised_strictly;
use heapr_proc::{Fields, memory_limits, soft_limit};

/// What is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// What leaves no more.
    pub(crate) of: String,
}

/// What a process can still be charged for; `None` where nothing limits it that can be read.
pub(crate) fn of_process(pid: u32) -> Option<Room> {
    let info = Fields::of_machine();
    let available = info.bytes("MemAvailable").map(|bytes| Room { bytes, of: "the machine".to_owned() });
    // (Only where the kernel promises no more than there is.)
    let promised = is_memory_promised_strictly().then(|| {
        let bytes = info.bytes("CommitLimit")?.saturating_sub(info.bytes("Committed_AS")?);
        Some(Room { bytes, of: "the machine's limit of promised memory (vm.overcommit_memory=2)".to_owned() })
    });
    let of_groups = memory_limits(pid).into_iter().map(|limit| Room {
        bytes: limit.free_bytes,
        of: format!("the control group {}", limit.folder.display()),
    });
    available.into_iter().chain(promised.flatten()).chain(of_groups).min_by_key(|room| room.bytes)
}

/// What a process's own limits leave of its address space and of its private memory.
pub(crate) fn of_limits(pid: u32) -> Option<Room> {
    let status = Fields::of_process(pid).ok()?;
    let kinds = [("Max address space", "VmSize", "RLIMIT_AS"), ("Max data size", "VmData", "RLIMIT_DATA")];
    let room = |(limit, used, of): (&str, &str, &str)| {
        let bytes = soft_limit(pid, limit)?.saturating_sub(status.bytes(used)?);
        Some(Room { bytes, of: format!("the process's limit of memory ({of})") })
    };
    kinds.into_iter().filter_map(room).min_by_key(|room| room.bytes)
}
