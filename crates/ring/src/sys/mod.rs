//! The system calls that agent and recorder make directly. The C library's wrappers set errno, may
//! be interposed by the target, and some allocate.

mod files;
mod memory;
mod thread;
mod words;

use heapr_wire::arch::call_numbers as number;

pub use crate::arch::{ticks_ordered, ticks_unordered};
use crate::forbidden_calls::permitted_syscall;

pub(crate) use files::memfd_sealed;
pub use files::{allocate, open, read, read_at, read_link, seals};
pub use memory::{
    MAPPING_EXECUTABLE, MAPPING_READABLE, MAPPING_WRITABLE, copy_own, give_back, is_all_mapped, is_readable,
    lock, map_anonymous, note_locking, own_mappings_avma, protect, query_mapping, unmap,
};
pub(crate) use memory::{map_shared, map_shared_unlocked, take_out_of_sight};
pub(crate) use thread::address_room_bytes;
pub use thread::{
    Precedence, SignalMask, alternate_stack, block_signals, lock_limit_bytes, monotonic_ns,
    parent_process_id, process_exists, process_id, set_precedence, set_signals, stack_limit_bytes, thread_id,
    thread_name,
};
pub use words::{Held, clear, futex_wait, futex_wake, held_at};

/// Result of a system call: a value, or the error number.
pub type SysResult = Result<usize, i32>;

fn answer(raw: isize) -> SysResult {
    if (-4095..0).contains(&raw) { Err(raw.wrapping_neg() as i32) } else { Ok(raw.cast_unsigned()) }
}

/// `EINTR`.
pub const EINTR: i32 = 4;
/// `EAGAIN`.
pub const EAGAIN: i32 = 11;
/// `ESRCH`.
pub const ESRCH: i32 = 3;

/// A descriptor that is closed when dropped.
#[derive(Debug)]
pub struct Descriptor(i32);

impl Descriptor {
    /// Number of the descriptor.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.0
    }

    /// Takes ownership of a descriptor that was opened for this value alone.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        Self(number)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned by this value and not used after it.
        let _ = unsafe { permitted_syscall(number::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}
