//! Checks whether memory to which an interpreter's structure points can be read. The kernel is
//! asked once per mapping, so that a misinterpreted structure causes no fault.
//!
//! Readable ranges are forgotten when the process unmaps memory. The hooks of munmap and similar
//! calls report mappings; for the program's data the C library's variable gives the end. No
//! descriptor stays open. If the kernel's list of mappings cannot be read, pages are tested one by
//! one.

use heapr_ring::pages::{page_begin, page_bytes, page_end};
use heapr_ring::sys;
use heapr_wire::arch::PAGE_BYTES_MAX;

use crate::arch::ADDRESS_END;
use crate::languages::given_back::Read;
use crate::modules::memory_map::{Access, Place, place_of};
use crate::modules::program_break;

const REMEMBERED: usize = 64;
/// Begin of the addresses at which a program's mappings lie.
const FIRST_AVMA: usize = 1 << 16;
/// Bytes that are tested at once if pages are tested.
const PROBED_BYTES: usize = 16 * PAGE_BYTES_MAX;

/// The mappings that were looked up last.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Readable {
    ranges: [(usize, usize); REMEMBERED],
    next: usize,
    /// The range that matched last, and the one before it.
    last: (usize, usize),
    before: (usize, usize),
    /// Begin of the program's data, whose end is the C library's variable; 0: unknown.
    data: usize,
    /// Ranges that must be checked again before use, one bit each.
    doubted: u64,
    given_back: Read,
}

impl Readable {
    /// True if `bytes` from an aligned address on can be read.
    #[inline(always)]
    pub(crate) fn has(&mut self, address: usize, bytes: usize) -> bool {
        address & 7 == 0 && self.has_unaligned(address, bytes)
    }

    #[inline(always)]
    pub(crate) fn has_unaligned(&mut self, address: usize, bytes: usize) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|_| address >= FIRST_AVMA) else { return false };
        if !self.given_back.is_all() {
            self.take_off_what_went();
        }
        let holds = |&(low, high): &(usize, usize)| address >= low && end <= high;
        holds(&self.last) || self.is_data(address, end) || holds(&self.before) || self.look(address, end)
    }

    #[inline(always)]
    fn is_data(&self, address: usize, end: usize) -> bool {
        self.data != 0 && address >= self.data && end <= program_break::end()
    }

    /// Forgets all ranges: memory that was readable may be unmapped.
    #[cold]
    pub(crate) fn forget(&mut self) {
        self.ranges.fill((0, 0));
        (self.last, self.before, self.data) = ((0, 0), (0, 0), 0);
    }

    /// Makes every range except the program's data be checked again before use, because the C
    /// library itself may have unmapped it.
    pub(crate) fn doubt(&mut self) {
        self.doubted = u64::MAX;
        (self.last, self.before) = ((0, 0), (0, 0));
    }

    /// Removes the ranges that hooked calls have unmapped since the last check.
    #[cold]
    #[inline(never)]
    fn take_off_what_went(&mut self) {
        let Self { ranges, data, given_back, .. } = self;
        let is_known = given_back.go_on(|low, high| {
            for range in ranges.iter_mut().filter(|range| range.0 < high && low < range.1) {
                // (The larger of the two remaining parts.)
                let (below, above) = ((range.0, low.max(range.0)), (high.min(range.1), range.1));
                let bytes = |part: (usize, usize)| part.1.wrapping_sub(part.0);
                *range = if bytes(below) >= bytes(above) { below } else { above };
            }
            if *data < high && low < program_break::end() {
                *data = 0;
            }
        });
        (self.last, self.before) = ((0, 0), (0, 0));
        if !is_known {
            self.forget();
        }
    }

    fn range_of(&self, address: usize) -> Option<(usize, usize)> {
        if self.is_data(address, address) {
            return Some((self.data, program_break::end()));
        }
        let known = [self.last, self.before];
        let holds = |&&(low, high): &&(usize, usize)| address >= low && address < high;
        known.iter().chain(&self.ranges).find(holds).copied()
    }

    #[inline(never)]
    fn look(&mut self, address: usize, end: usize) -> bool {
        let known = self.ranges.iter().position(|&(low, high)| address >= low && end <= high);
        let Some((number, &range)) = known.and_then(|number| Some((number, self.ranges.get(number)?))) else {
            return self.ask(address, end);
        };
        if self.doubted >> number & 1 != 0 {
            if !sys::is_all_mapped(range.0, range.1.wrapping_sub(range.0)) {
                return self.ask(address, end);
            }
            self.doubted &= !(1 << number);
        }
        (self.before, self.last) = (self.last, range);
        true
    }

    #[cold]
    fn ask(&mut self, address: usize, end: usize) -> bool {
        if end > ADDRESS_END || sys::is_readable(address) == Some(false) {
            return false;
        }
        let (low, mut high) = match place_of(address, Access::Read) {
            Place::Mapped { low, high } => (low, high),
            Place::Other => return false,
            Place::Unknown => return self.probe(address, end),
        };
        // A range that was mapped in parts lies in several mappings.
        while high < end {
            match place_of(high, Access::Read) {
                Place::Mapped { high: next, .. } if next > high => high = next,
                _ => return false,
            }
        }
        let data_end = program_break::end();
        if data_end != 0 && low < data_end && high == page_end(data_end) {
            self.data = low;
            return end <= data_end;
        }
        self.remember(low, high);
        true
    }

    /// Checks like [`Readable::ask`], by testing the pages themselves.
    fn probe(&mut self, address: usize, end: usize) -> bool {
        let can_be_read = |low: usize, high: usize| {
            (low..high).step_by(page_bytes()).all(|page| sys::is_readable(page) == Some(true))
        };
        let low = page_begin(address);
        let high = page_end(end);
        if !can_be_read(low, high) {
            return false;
        }
        let (widely_low, widely_high) = (low & !(PROBED_BYTES - 1), high.next_multiple_of(PROBED_BYTES));
        if can_be_read(widely_low, low) && can_be_read(high, widely_high) {
            self.remember(widely_low, widely_high);
        } else {
            self.remember(low, high);
        }
        true
    }

    fn remember(&mut self, mut low: usize, mut high: usize) {
        for (number, range) in self.ranges.iter_mut().enumerate() {
            let is_beside = range.1 == low || range.0 == high;
            let is_doubted = self.doubted >> number & 1 != 0;
            if range.0 < high && low < range.1 {
                // An older range of the same memory.
                *range = (0, 0);
            } else if is_beside && !is_doubted && range.1 != 0 {
                (low, high) = (low.min(range.0), high.max(range.1));
                *range = (0, 0);
            }
        }
        let place = self.next % REMEMBERED;
        self.next = place.wrapping_add(1);
        if let Some(range) = self.ranges.get_mut(place) {
            *range = (low, high);
        }
        self.doubted &= !(1 << place);
        (self.before, self.last) = ((0, 0), (low, high));
    }

    /// Returns the word at an address, if it can be read.
    pub(crate) fn word(&mut self, address: usize) -> Option<usize> {
        // SAFETY: readable, and any bits are a number.
        self.has(address, 8).then(|| unsafe { word(address) })
    }

    /// Returns the four bytes at an address, if they can be read.
    pub(crate) fn half(&mut self, address: usize) -> Option<u32> {
        let is_there = address & 3 == 0 && self.has_unaligned(address, 4);
        // SAFETY: readable, and any bits are a number.
        is_there.then(|| unsafe { half(address) })
    }

    /// Returns the end of the readable memory from an address on, within one mapping.
    pub(crate) fn end_of(&mut self, address: usize) -> usize {
        if !self.has(address, 8) {
            return address;
        }
        self.range_of(address).map_or(address, |(_, high)| high)
    }

    /// Returns bytes at an address, if they can be read.
    pub(crate) fn bytes(&mut self, address: usize, count: usize) -> Option<&'static [u8]> {
        // SAFETY: readable. They belong to an object that the calling thread's frame holds for as
        // long as the hook runs, and are used only during that time.
        self.has_unaligned(address, count)
            .then(|| unsafe { core::slice::from_raw_parts(address as *const u8, count) })
    }
}

/// # Safety
/// 1. Eight bytes at `address` are readable.
#[inline(always)]
pub(crate) unsafe fn word(address: usize) -> usize {
    // SAFETY: (1).
    unsafe { (address as *const usize).read_volatile() }
}

/// # Safety
/// 1. Four bytes at `address` are readable.
#[inline(always)]
pub(crate) unsafe fn half(address: usize) -> u32 {
    // SAFETY: (1).
    unsafe { (address as *const u32).read_volatile() }
}
