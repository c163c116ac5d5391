//! What this process keeps of memory that it has freed.

/// From now on large blocks are given back to the system when they are freed, and so is what lies
/// free at the heap's end: for who needs much for a moment (a program's modules, while it is
/// attached to), and then runs for days. The C library would keep it, as it grows what it takes for
/// large.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
            (libc::M_TRIM_THRESHOLD, LARGE_BYTES),
            (libc::M_ARENA_MAX, 1),
        ] {
            // SAFETY: a plain call; where it fails all stays as it is.
            let _ = unsafe { libc::mallopt(parameter, value) };
        }
    }
}
