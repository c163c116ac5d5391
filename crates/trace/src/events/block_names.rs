//! The writer's table of a chunk's blocks, by which a block is named in fewer bytes than its
//! address takes.

use super::{CLASS_DEPTH, CLASSES, class};

/// Bits of an address that are remembered.
const ADDRESS_BITS: u32 = 55;
const PLACE_BITS: u32 = 14;
const NUMBER_BITS: u32 = 16;
const CLASS_BITS: u32 = 7;
const TAG_SHIFT: u32 = NUMBER_BITS + CLASS_BITS;
/// Largest number of blocks that are remembered.
const PLACES: usize = 1 << PLACE_BITS;
/// Number of size classes, including that of blocks without a stack of freed addresses.
const CLASS_PLACES: usize = 1 << CLASS_BITS;

const _: () = assert!(super::EVENTS_PER_CHUNK <= 1 << NUMBER_BITS && CLASSES < CLASS_PLACES);
const _: () = assert!(ADDRESS_BITS - PLACE_BITS + TAG_SHIFT == u64::BITS);

/// Stands for an empty slot in the stacks of freed addresses.
const NO_ADDRESS: u64 = u64::MAX;

/// The blocks of the chunk so far.
#[derive(Debug)]
pub(super) struct MadeBlocks {
    /// Number of allocations.
    count: u64,
    /// Index of the last freed address, by class.
    tops: [u8; CLASS_PLACES],
    /// Freed addresses by class, as in [`super::Models`]. All other slots hold [`NO_ADDRESS`], so
    /// that their number need not be counted.
    freed: [[u64; CLASS_DEPTH]; CLASS_PLACES],
    /// Entry by hash of the address: `rest of the address:41 | number of the allocation:16 | size
    /// class:7`. An entry of 0 is empty, because no block has class 0. Multiplying by an odd number
    /// modulo 2^55 maps each address to a different product. Its upper 14 bits are the slot; the
    /// other 41 distinguish the address from all others of that slot.
    table: [u64; PLACES],
}

/// Slot and rest of an address that is not [`is_long`].
#[inline(always)]
fn place(address: u64) -> (usize, u64) {
    let product = address.wrapping_mul(0x9e37_79b9_7f4a_7c15 << (u64::BITS - ADDRESS_BITS));
    ((product >> (u64::BITS - PLACE_BITS)) as usize, product << PLACE_BITS)
}

/// Whether an address has more bits than are remembered. The file names such a block by its
/// address.
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

    /// Remembers a block.
    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, class: usize) {
        let (place, rest) = place(address);
        let entry = rest | self.count << CLASS_BITS | class as u64;
        self.table[place] = if is_long(address) { 0 } else { entry };
        self.count += 1;
    }

    /// Remembers an allocation. Returns whether its address is the one freed last in its class.
    /// With `IS_VARIED` the code has no branch on that.
    #[inline(always)]
    pub(super) fn alloc<const IS_VARIED: bool>(&mut self, address: u64, size_bytes: u64) -> bool {
        let class = class(size_bytes) % CLASS_PLACES;
        self.note(address, class);
        let top = self.tops[class];
        let last = &mut self.freed[class][usize::from(top) % CLASS_DEPTH];
        // (A long address never enters the freed ones, but one long address equals `NO_ADDRESS`.)
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

    /// Number of allocations since the block at a freed address was made, if the block is
    /// remembered.
    #[inline(always)]
    pub(super) fn free(&mut self, address: u64) -> Option<u16> {
        let (place, rest) = place(address);
        let entry = self.table[place];
        // The low bits of `rest` are 0: for an entry of this address the exclusive or leaves its
        // number and class.
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
