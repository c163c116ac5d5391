//! Whether memory that a structure of an interpreter points to can be read: asked of the kernel
//! once a mapping, so that a structure that is not what it is taken for costs no fault.
//!
//! What was found is forgotten whenever memory of the process is given back, as the hooks of munmap
//! and its kin tell: an interpreter's heap shrinks, too.

use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::modules::memory_map::{Access, Place, place_of};

/// How often memory was given back so far.
static GIVEN_BACK: AtomicU32 = AtomicU32::new(0);

/// Memory is about to be unmapped, or to be protected from reading.
#[inline(always)]
pub(crate) fn memory_goes() {
    GIVEN_BACK.fetch_add(1, Release);
}

const REMEMBERED: usize = 64;
/// No mapping of a program begins below.
const FIRST_AVMA: usize = 1 << 16;

/// The mappings that were asked for last.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Readable {
    ranges: [(usize, usize); REMEMBERED],
    next: usize,
    /// The one that was asked for last, and the one before it.
    last: (usize, usize),
    before: (usize, usize),
    /// As [`GIVEN_BACK`] was when the mappings were asked for.
    given_back: u32,
}

impl Readable {
    /// Whether `bytes` from an aligned address on can be read.
    #[inline(always)]
    pub(crate) fn has(&mut self, address: usize, bytes: usize) -> bool {
        address & 7 == 0 && self.has_unaligned(address, bytes)
    }

    #[inline(always)]
    pub(crate) fn has_unaligned(&mut self, address: usize, bytes: usize) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|_| address >= FIRST_AVMA) else { return false };
        if GIVEN_BACK.load(Acquire) != self.given_back {
            self.forget();
        }
        let holds = |&(low, high): &(usize, usize)| address >= low && end <= high;
        holds(&self.last) || holds(&self.before) || self.look(address, end)
    }

    /// Asks anew from now on: what could be read may be gone.
    #[cold]
    pub(crate) fn forget(&mut self) {
        self.given_back = GIVEN_BACK.load(Acquire);
        self.ranges.fill((0, 0));
        (self.last, self.before) = ((0, 0), (0, 0));
    }

    fn range_of(&self, address: usize) -> Option<(usize, usize)> {
        let known = [self.last, self.before];
        let holds = |&&(low, high): &&(usize, usize)| address >= low && address < high;
        known.iter().chain(&self.ranges).find(holds).copied()
    }

    #[inline(never)]
    fn look(&mut self, address: usize, end: usize) -> bool {
        let known = self.ranges.iter().find(|&&(low, high)| address >= low && end <= high);
        match known {
            Some(&range) => {
                (self.before, self.last) = (self.last, range);
                true
            }
            None => self.ask(address, end),
        }
    }

    #[cold]
    fn ask(&mut self, address: usize, end: usize) -> bool {
        let Place::Mapped { low, mut high } = place_of(address, Access::Read) else { return false };
        // What was mapped in parts lies in several mappings.
        while high < end {
            match place_of(high, Access::Read) {
                Place::Mapped { high: next, .. } if next > high => high = next,
                _ => return false,
            }
        }
        let place = self.next;
        self.next = place.wrapping_add(1) % REMEMBERED;
        if let Some(range) = self.ranges.get_mut(place) {
            *range = (low, high);
        }
        true
    }

    /// What lies at an address, if it can be read.
    pub(crate) fn word(&mut self, address: usize) -> Option<usize> {
        // SAFETY: readable, and any bits are a number.
        self.has(address, 8).then(|| unsafe { word(address) })
    }

    /// The four bytes there, likewise.
    pub(crate) fn half(&mut self, address: usize) -> Option<u32> {
        let is_there = address & 3 == 0 && self.has_unaligned(address, 4);
        // SAFETY: readable, and any bits are a number.
        is_there.then(|| unsafe { half(address) })
    }

    /// Where what can be read from an address on ends, as far as one mapping goes.
    pub(crate) fn end_of(&mut self, address: usize) -> usize {
        if !self.has(address, 8) {
            return address;
        }
        self.range_of(address).map_or(address, |(_, high)| high)
    }

    /// Bytes at an address, if they can be read.
    pub(crate) fn bytes(&mut self, address: usize, count: usize) -> Option<&'static [u8]> {
        // SAFETY: readable; they belong to an object that the calling thread's frame holds, for as
        // long as the hook runs, which is as long as they are looked at.
        self.has_unaligned(address, count)
            .then(|| unsafe { core::slice::from_raw_parts(address as *const u8, count) })
    }
}

/// # Safety
/// 1. Eight bytes are readable there.
#[inline(always)]
pub(crate) unsafe fn word(address: usize) -> usize {
    // SAFETY: (1).
    unsafe { (address as *const usize).read_volatile() }
}

/// # Safety
/// 1. Four bytes are readable there.
#[inline(always)]
pub(crate) unsafe fn half(address: usize) -> u32 {
    // SAFETY: (1).
    unsafe { (address as *const u32).read_volatile() }
}
