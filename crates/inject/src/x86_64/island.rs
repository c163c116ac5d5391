//! The island near a module: for each hooked function of it where its first bytes now lead, and its moved instructions.
//!
//! ```text
//! 0   magic                          8   address of the injection record
//! 16  mov rax, [rsp]                 the caller lies in the allocator itself: not the program's call
//!     lea r11, [rip + family]
//!     sub rax, r11
//!     cmp rax, family bytes
//!     jb  moved
//!     jmp [rip + 0]                  to the agent
//!     address of the agent's trampoline
//! moved:
//!     moved instructions, jump to the rest
//! ```
//!
//! rax and r11 carry nothing at the entry of a function that has a fixed number of arguments.

use super::{Prologue, jump};

/// First word of an island.
const ISLAND_MAGIC: u64 = u64::from_le_bytes(*b"heaprisl");
/// Bytes before the first function.
pub(crate) const OPENING_BYTES: usize = 16;
/// More than one function takes: 34 for the test, 14 for the jump, at most 5 moved instructions of 15, lengthened.
const FUNCTION_BYTES_MAX: usize = 192;
const PAGE: u64 = 4096;

/// An island under construction.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start_avma: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Where a function's entry and its moved instructions lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) entry_avma: u64,
    pub(crate) moved_avma: u64,
}

impl Island {
    /// Size of an island for so many functions, in whole pages.
    pub(crate) fn bytes_for(function_count: usize) -> u64 {
        ((OPENING_BYTES + function_count * FUNCTION_BYTES_MAX) as u64).next_multiple_of(PAGE)
    }

    /// An island without functions.
    pub(crate) fn new(start_avma: u64, record_avma: u64) -> Self {
        let mut bytes = ISLAND_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&record_avma.to_le_bytes());
        Self { start_avma, bytes }
    }

    fn here(&self) -> u64 {
        self.start_avma + self.bytes.len() as u64
    }

    /// Adds a function whose calls go to `trampoline_avma`, unless they come from `family` (start and bytes).
    pub(crate) fn add(
        &mut self,
        prologue: &Prologue,
        trampoline_avma: u64,
        family: Option<(u64, u64)>,
    ) -> Result<Landing, &'static str> {
        while !self.bytes.len().is_multiple_of(16) {
            self.bytes.push(0xcc);
        }
        let entry_avma = self.here();
        let mut to_moved = None;
        if let Some((family_avma, family_bytes)) = family {
            const TOO_FAR: &str = "the island is too far away";
            let length = u32::try_from(family_bytes).ok().filter(|&bytes| bytes < 1 << 31).ok_or(TOO_FAR)?;
            self.bytes.extend_from_slice(&[0x48, 0x8b, 0x04, 0x24]);
            let behind = self.here() + 7;
            let distance =
                i32::try_from(family_avma.wrapping_sub(behind).cast_signed()).map_err(|_| TOO_FAR)?;
            self.bytes.extend_from_slice(&[0x4c, 0x8d, 0x1d]);
            self.bytes.extend_from_slice(&distance.to_le_bytes());
            self.bytes.extend_from_slice(&[0x4c, 0x29, 0xd8, 0x48, 0x3d]);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(&[0x0f, 0x82, 0, 0, 0, 0]);
            to_moved = Some(self.bytes.len());
        }
        self.bytes.extend_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        self.bytes.extend_from_slice(&trampoline_avma.to_le_bytes());
        let moved_avma = self.here();
        if let Some(behind) = to_moved {
            let distance = (self.bytes.len() - behind) as u32;
            self.bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
        }
        let moved = prologue.moved(moved_avma)?;
        self.bytes.extend(moved);
        Ok(Landing { entry_avma, moved_avma })
    }

    /// The jump that goes into the function's first bytes.
    pub(crate) fn jump_from(prologue: &Prologue, landing: Landing) -> Result<[u8; 5], &'static str> {
        jump(prologue.entry_avma, landing.entry_avma).ok_or("the island is too far away")
    }
}

/// If `code`, at `entry_avma`, jumps to an island: the address of that island's page, where the opening must be.
pub(crate) fn island_of(entry_avma: u64, code: &[u8]) -> Option<u64> {
    let (&[0xe9, a, b, c, d], _) = code.split_first_chunk::<5>()? else { return None };
    let target = entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    Some(target & !(PAGE - 1))
}

/// The address of the injection record from the first bytes of an island.
pub(crate) fn record_of(opening: &[u8; OPENING_BYTES]) -> Option<u64> {
    let (magic, record) = opening.split_at(8);
    (u64::from_le_bytes(magic.try_into().ok()?) == ISLAND_MAGIC)
        .then_some(u64::from_le_bytes(record.try_into().ok()?))
}
