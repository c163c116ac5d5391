//! System calls of the model: a wait may end at any time, as a futex's may, and time stands still.

use loom::sync::atomic::AtomicU32;

/// Descriptor without a file.
#[derive(Debug)]
pub struct Descriptor;

/// Model in which no call is forbidden.
pub mod forbidden_calls {
    pub fn has_clock() -> bool {
        true
    }
}

pub fn futex_wait(_word: &AtomicU32, _expected: u32, _timeout_ns: u64) {
    loom::thread::yield_now();
}

pub fn futex_wake(_word: &AtomicU32, _count: u32) {}

pub fn monotonic_ns() -> u64 {
    0
}

pub fn process_exists(_pid: u32) -> bool {
    true
}

pub fn process_id() -> u32 {
    1
}

pub fn parent_process_id() -> u32 {
    1
}

pub fn read_link<'b>(_path: &[u8], _buffer: &'b mut [u8]) -> Result<&'b [u8], i32> {
    Err(2)
}

pub fn own_mappings_avma() -> u64 {
    0
}
