//! Size of the shared buffers and their growth.
//!
//! ```text
//!   file, mapped by all:   [ fixed part | open buffers, with memory | reserve                 ]
//!                                                    grows ----->   up to --max-buffers, or
//!                                                                   what limits leave
//! ```
//! The recorder allocates the memory of buffers before they are used. So its control group is
//! charged for them, and no target is killed because a page cannot be allocated.

use heapr_proc::machine::is_memory_promised_strictly;
use heapr_proc::own_pid;
use heapr_ring::sys::Descriptor;
use heapr_ring::{Pool, PoolProperties, reader};
use heapr_wire::{buffers_offset, pool_bytes};

use crate::memory_room::{self, Room};
use crate::{Error, SessionProperties};

/// Least number of buffers for a recording.
const BUFFERS_LEAST: usize = 4;
/// Divisor of the free memory: the buffers take at most this part of it at the start.
const START_SHARE: u64 = 2;
/// Divisor of the free memory: each step of growth takes at most this part of it.
const STEP_SHARE: u64 = 4;
/// Divisor of the free memory below which all buffers together count as ample. Programs in the
/// recorder's own control group then open buffers themselves, because some cannot wait for it.
const AMPLE_SHARE: u64 = 8;
/// Time until the next try after a step for which there was no room.
const RETRY_NS: u64 = 1_000_000_000;
/// Address space for the recorder's own threads: each has a stack, and glibc reserves 64 MiB for
/// the arena of each. The recorder ran out of memory with 160 MiB, and never with 190.
const OWN_ADDRESSES_BYTES: u64 = 224 << 20;
/// Bytes of the agent's image and tables per process.
const AGENT_BYTES: u64 = 3 << 20;
/// Bytes of the agent per thread.
const AGENT_THREAD_BYTES: u64 = 192 << 10;

/// Opens buffers as they are needed.
#[derive(Debug)]
pub(crate) struct PoolGrowth {
    pub(crate) descriptor: Descriptor,
    retry_ns: u64,
}

impl PoolGrowth {
    pub(crate) fn new(descriptor: Descriptor) -> Self {
        Self { descriptor, retry_ns: 0 }
    }

    /// Opens more buffers, depending on the number of claimed ones.
    pub(crate) fn follow(&mut self, pool: &Pool, claimed_count: usize, now_ns: u64) {
        if pool.limit_count() < pool.buffer_count() && now_ns >= self.retry_ns {
            pool.set_limit_count(pool.buffer_count());
        }
        let open_count = pool.open_count();
        if claimed_count <= open_count / 4 || open_count >= pool.limit_count() {
            return;
        }
        let wanted_count = open_count.saturating_mul(2).max(BUFFERS_LEAST).min(pool.buffer_count());
        let step_bytes = ((wanted_count - open_count) * pool.buffer_bytes()) as u64;
        let has_room =
            memory_room::of_process(own_pid()).is_none_or(|room| step_bytes <= room.bytes / STEP_SHARE);
        if !has_room || reader::open_buffers(pool, &self.descriptor, wanted_count).is_err() {
            pool.set_limit_count(open_count);
            self.retry_ns = now_ns + RETRY_NS;
        }
    }
}

/// Returns the largest number of buffers, and the number opened at the start.
pub(crate) fn size(properties: &SessionProperties) -> Result<PoolProperties, Error> {
    let buffer_bytes = properties.buffer_bytes;
    let least_count = BUFFERS_LEAST.min(properties.max_buffers);
    let mut buffer_count = properties.max_buffers;
    let of_file =
        heapr_inject::file_bytes_max().map(|bytes| Room::of(bytes, "the limit of file sizes (ulimit -f)"));
    let limits = memory_room::of_each_limit(own_pid());
    let lack = limits.iter().find(|room| room.is_of_address_space && room.bytes < OWN_ADDRESSES_BYTES);
    if let Some(room) = lack {
        return Err(no_room(OWN_ADDRESSES_BYTES, room.clone()));
    }
    let of_space = limits.into_iter().map(|room| Room { bytes: room.bytes / STEP_SHARE, ..room });
    for room in of_file.into_iter().chain(of_space) {
        // A pool of more buffers has a larger fixed part: at worst a few pages are left unused.
        let fitting = room.bytes.saturating_sub(buffers_offset(buffer_count) as u64) / buffer_bytes as u64;
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        if fitting < least_count {
            return Err(no_room(pool_bytes(least_count, buffer_bytes) as u64, room));
        }
        buffer_count = buffer_count.min(fitting);
    }
    let mut is_ample = true;
    let mut open_count = properties.min_buffers.min(buffer_count);
    if let Some(room) = memory_room::of_process(own_pid()) {
        let fixed_bytes = buffers_offset(buffer_count) as u64;
        let fitting = (room.bytes / START_SHARE).saturating_sub(fixed_bytes) / buffer_bytes as u64;
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        if fitting < least_count {
            let needed = fixed_bytes + (least_count * buffer_bytes) as u64;
            return Err(no_room(needed.saturating_mul(START_SHARE), room));
        }
        open_count = open_count.min(fitting);
        is_ample = room.bytes / AMPLE_SHARE >= pool_bytes(buffer_count, buffer_bytes) as u64
            && !is_memory_promised_strictly();
    }
    Ok(PoolProperties { buffer_bytes, buffer_count, open_count, is_ample })
}

/// Checks that a running process has room for the agent; the buffers are the recorder's.
pub(crate) fn check_target(pid: u32) -> Result<(), Error> {
    let threads = heapr_proc::threads(pid).map_or(1, Iterator::count) as u64;
    let needed = AGENT_BYTES + threads * AGENT_THREAD_BYTES;
    let rooms = memory_room::of_process(pid).into_iter().chain(memory_room::of_limits(pid));
    match rooms.min_by_key(|room| room.bytes) {
        Some(room) if room.bytes < needed => Err(no_room(needed, room)),
        _ => Ok(()),
    }
}

fn no_room(needed_bytes: u64, room: Room) -> Error {
    Error::NoRoom { needed_kib: needed_bytes.div_ceil(1024), left_kib: room.bytes >> 10, of: room.of }
}
