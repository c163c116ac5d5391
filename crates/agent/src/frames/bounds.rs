//! Finds the stack that an address lies on, and the end up to which that stack may be read.
//!
//! Unwinding reads only between the stack pointer and the upper end of the mapping that holds it.
//! So wrong unwind information can end a stack early but cannot cause a fault.
//!
//! If unwind information says that a frame's caller runs on another stack, that stack is checked
//! with the kernel each time. Only the thread's own stack needs no check. Any other stack may have
//! been unmapped since the last time.

use heapr_ring::sys;

use crate::arch::thread_pointer;
use crate::frames::control_block;
use crate::frames::stack_range::StackRange;
use crate::modules::memory_map::{self, Access, Place};

/// Ranges that a thread knows: first its own stack, then those found since (signal stacks, fibers),
/// of which the oldest is replaced.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct KnownRanges {
    ranges: [StackRange; KNOWN_MAX],
    next: usize,
    /// Low end of the part of the thread's own stack that has been seen mapped, for a stack that
    /// continues there from another one. Memory below it may be a guard, or not be mapped yet.
    seen_low: usize,
}

/// Number of ranges that a thread remembers. If it runs more fibers, it asks the kernel anew at
/// each switch (3 µs).
const KNOWN_MAX: usize = 16;

/// Bytes below the main thread's stack that the kernel leaves free of other mappings. (`mmap_base`:
/// 128 MiB or the stack limit, whichever is more.) So an address in this range can only be the
/// stack's.
const MAIN_GAP_BYTES: usize = 128 << 20;

impl KnownRanges {
    /// Ranges of a thread that knows no stack yet.
    pub(crate) const EMPTY: Self = Self { ranges: [StackRange::EMPTY; KNOWN_MAX], next: 0, seen_low: 0 };

    /// Returns the range that holds `sp`; `EMPTY` if it cannot be found. `is_main`: the calling
    /// thread is the main one.
    #[inline(always)]
    pub(crate) fn find(&mut self, sp: usize, is_main: bool) -> StackRange {
        let own = self.own();
        if own.contains(sp) { own } else { self.find_other(sp, is_main) }
    }

    /// Returns the thread's own stack; `EMPTY` if it is not known yet.
    #[inline(always)]
    pub(crate) fn own(&self) -> StackRange {
        let [own, ..] = self.ranges;
        own
    }

    /// Returns the stack that holds an address to which a frame of another stack leads; `EMPTY` if
    /// no stack does.
    #[cold]
    #[inline(never)]
    pub(crate) fn across(&mut self, address: usize) -> StackRange {
        let own = self.own();
        let is_own = own.contains(address);
        if is_own && self.seen_low != 0 && address >= self.seen_low {
            return StackRange { low: self.seen_low, high: own.high };
        }
        match memory_map::place_of(address, Access::Write) {
            Place::Mapped { low, high } if is_own => {
                self.seen_low = low.max(own.low);
                StackRange { low: self.seen_low, high: own.high.min(high) }
            }
            Place::Mapped { low, high } => StackRange { low, high },
            Place::Other | Place::Unknown => StackRange::EMPTY,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_other(&mut self, sp: usize, is_main: bool) -> StackRange {
        if let Some(&known) = self.ranges.iter().find(|range| range.contains(sp)) {
            return known;
        }
        let [own, ..] = self.ranges;
        let (found, is_own) = discover(sp, is_main);
        if own == StackRange::EMPTY && is_own {
            if let Some(first) = self.ranges.first_mut() {
                *first = found;
            }
            return found;
        }
        self.next = if self.next.wrapping_add(1) >= KNOWN_MAX { 1 } else { self.next.wrapping_add(1) };
        if let Some(place) = self.ranges.get_mut(self.next) {
            *place = found;
        }
        found
    }
}

/// Finds the stack that holds `sp`, and whether it is the thread's own, which exists as long as the
/// thread.
fn discover(sp: usize, is_main: bool) -> (StackRange, bool) {
    let main_high = control_block::main_high();
    if is_main && main_high != 0 {
        let limit = sys::stack_limit_bytes();
        let gap = if limit == usize::MAX { MAIN_GAP_BYTES } else { limit.max(MAIN_GAP_BYTES) };
        let main = StackRange { low: main_high.saturating_sub(gap), high: main_high };
        if main.contains(sp) {
            return (main, true);
        }
    }
    if let Some(own) = control_block::own_stack(sp) {
        return (own, true);
    }
    if let Some((low, bytes)) = sys::alternate_stack() {
        let alternate = StackRange { low, high: low.saturating_add(bytes) };
        if alternate.contains(sp) {
            return (alternate, false);
        }
    }
    let mapping = match memory_map::place_of(sp, Access::Read) {
        Place::Mapped { low, high } => StackRange { low, high },
        Place::Other | Place::Unknown => StackRange::EMPTY,
    };
    // A thread's control block lies at the top of its own stack; no frame lies above it.
    let control_block = thread_pointer::thread_pointer();
    if mapping.contains(control_block) && control_block > sp {
        return (StackRange { low: mapping.low, high: control_block }, true);
    }
    // If the C library does not tell where the main stack ends, the first stack that is seen is
    // taken to be the main one.
    (mapping, is_main && main_high == 0)
}
