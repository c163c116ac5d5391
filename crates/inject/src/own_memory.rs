//! Freed memory of this process: returned to the system.

/// Makes the C library return large freed blocks and the free end of the heap to the system.
///
/// For processes that need much memory for a moment (a program's modules during an attach), and
/// then run for days. The C library would otherwise raise its threshold for large blocks and hold
/// the memory.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
            (libc::M_TRIM_THRESHOLD, LARGE_BYTES),
            (libc::M_ARENA_MAX, 1),
        ] {
            // SAFETY: the call has no preconditions; if it fails, nothing changes.
            let _ = unsafe { libc::mallopt(parameter, value) };
        }
    }
}
