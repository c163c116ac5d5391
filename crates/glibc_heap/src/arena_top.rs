//! The unused ends of arenas.

/// The unused end of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaTop {
    /// Index of the arena in the ring.
    pub arena: u32,
    /// First address.
    pub start_avma: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether the arena is a main one, from whose top a trim returns memory to the system.
    pub is_main: bool,
}
