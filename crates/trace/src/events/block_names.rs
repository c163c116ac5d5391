//! What the writer remembers of a chunk's blocks, to name them by less than their addresses.

use super::{CLASS_DEPTH, CLASSES, class};

/// Bits of the addresses that are remembered.
const ADDRESS_BITS: u32 = 55;
const PLACE_BITS: u32 = 14;
const NUMBER_BITS: u32 = 16;
const CLASS_BITS: u32 = 7;
const TAG_SHIFT: u32 = NUMBER_BITS + CLASS_BITS;
/// Blocks that are remembered at most.
const PLACES: usize = 1 << PLACE_BITS;
/// Size classes, those of blocks without a stack of freed addresses among them.
const CLASS_PLACES: usize = 1 << CLASS_BITS;

const _: () = assert!(super::EVENTS_PER_CHUNK <= 1 << NUMBER_BITS && CLASSES < CLASS_PLACES);
const _: () = assert!(ADDRESS_BITS - PLACE_BITS + TAG_SHIFT == u64::BITS);

/// In place of an address: none of a block that is remembered.
const NO_ADDRESS: u64 = u64::MAX;

/// The chunk's blocks.
#[derive(Debug)]
pub(super) struct MadeBlocks {
    /// Of allocations.
    count: u64,
    /// Where the last freed address of a class is.
    tops: [u8; CLASS_PLACES],
    /// By class the freed addresses as in [`super::Models`], around which all places have
    /// [`NO_ADDRESS`], so that it need not be known how many there are.
    freed: [[u64; CLASS_DEPTH]; CLASS_PLACES],
    /// All that a free needs in one word: `rest of the address:41 | number of the allocation:16 |
    /// size class:7`. 0, the class of no block: empty. An address times an odd number, modulo
    /// 2^55, is another one for each: 14 bits of it are the place, the others tell it from all
    /// other addresses that come there.
    table: [u64; PLACES],
}

/// Place and rest of an address that is not [`is_long`].
#[inline(always)]
fn place(address: u64) -> (usize, u64) {
    let product = address.wrapping_mul(0x9e37_79b9_7f4a_7c15 << (u64::BITS - ADDRESS_BITS));
    ((product >> (u64::BITS - PLACE_BITS)) as usize, product << PLACE_BITS)
}

/// Of more bits than are remembered: such a block is always named by its address.
#[inline(always)]
fn is_long(address: u64) -> bool {
    address >> ADDRESS_BITS != 0
}

impl MadeBlocks {
    pub(super) const fn new() -> Self {
        Self {
            count: 0,
            tops: [0; CLASS_PLACES],
            freed: [[NO_ADDRESS; CLASS_DEPTH]; CLASS_PLACES],
            table: [0; PLACES],
        }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.freed[..CLASSES].as_flattened_mut().fill(NO_ADDRESS);
        self.table.fill(0);
    }

    /// Notes a block.
    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, class: usize) {
        let (place, rest) = place(address);
        let entry = rest | self.count << CLASS_BITS | class as u64;
        self.table[place] = if is_long(address) { 0 } else { entry };
        self.count += 1;
    }

    /// Notes an allocation. Tells whether it got the address that was freed last in its class: with
    /// a branch, or without one if that `IS_VARIED`.
    #[inline(always)]
    pub(super) fn alloc<const IS_VARIED: bool>(&mut self, address: u64, size_bytes: u64) -> bool {
        let class = class(size_bytes) % CLASS_PLACES;
        self.note(address, class);
        let top = self.tops[class];
        let last = &mut self.freed[class][usize::from(top) % CLASS_DEPTH];
        // (A long address is never among the freed ones, but one is `NO_ADDRESS`.)
        let is_foretold = *last == address && address != NO_ADDRESS;
        if IS_VARIED {
            *last |= u64::from(is_foretold).wrapping_neg();
            self.tops[class] = top.wrapping_sub(u8::from(is_foretold));
        } else if is_foretold {
            *last = NO_ADDRESS;
            self.tops[class] = top.wrapping_sub(1);
        }
        is_foretold
    }

    /// How many allocations ago a block that is freed was made, if it is known.
    #[inline(always)]
    pub(super) fn free(&mut self, address: u64) -> Option<u16> {
        let (place, rest) = place(address);
        let entry = self.table[place];
        // The low bits of `rest` are 0: what is left of an entry of this address are its number and
        // class.
        let noted = entry ^ rest;
        let class = noted as usize % CLASS_PLACES;
        if noted >> TAG_SHIFT != 0 || class == 0 || is_long(address) {
            return None;
        }
        if class < CLASSES {
            let top = self.tops[class].wrapping_add(1);
            self.tops[class] = top;
            self.freed[class][usize::from(top) % CLASS_DEPTH] = address;
        }
        Some(self.count.wrapping_sub((noted >> CLASS_BITS) + 1) as u16)
    }
}
