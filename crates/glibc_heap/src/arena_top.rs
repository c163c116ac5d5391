//! The unused ends of arenas.

/// The unused end of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaTop {
    /// The arena's place in the ring.
    pub arena: u32,
    /// First address.
    pub start_avma: u64,
    /// Size.
    pub size_bytes: u64,
    /// Whether it is that of a main arena, of which a trim gives back what it can.
    pub is_main: bool,
}
