//! Metadata of compiled code about its calls: the calling method, and those into which it was
//! inlined.
//!
//! ```text
//! descriptions of calls    | offset in the code | offset of its packed scope | …
//! a scope                  | scope of the caller | method | instruction | …
//! ```
//! The descriptions end with a last one. Scopes are in small numbers.

use crate::languages::java::small_numbers::SmallNumbers;
use crate::languages::readable::Readable;
use crate::modules::java_layout::{Layout, Tabled};

/// Largest number of methods that one frame stands for.
pub(crate) const INLINED_MAX: usize = 128;
/// Largest number of descriptions that are read, and bytes of each.
const PLACES_MAX: usize = 1 << 17;
const PLACE_BYTES: usize = 16;
/// Code offset of the last description.
const LAST: u32 = i32::MAX.cast_unsigned();

/// A method and the instruction of its call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) method: usize,
    /// Index of the instruction; negative: unknown.
    pub(crate) index: i32,
}

/// Compiled code of a method.
#[derive(Debug)]
pub(crate) struct Code {
    blob: usize,
    pub(crate) method: usize,
    number: u32,
}

impl Code {
    /// Reads the description of the code in a blob.
    pub(crate) fn read(readable: &mut Readable, layout: &Layout, blob: usize) -> Option<Self> {
        if !readable.has(blob, layout.compiled_bytes) {
            return None;
        }
        let method = readable.word(blob.wrapping_add(layout.method_of_code))?;
        let number = half(readable, blob.wrapping_add(layout.compile_number))?;
        Some(Self { blob, method, number })
    }

    /// Returns a hash that distinguishes this code from all other code that the machine has made
    /// and will make.
    pub(crate) fn key(&self) -> u64 {
        mix(mix(self.blob as u64, self.method as u64), u64::from(self.number))
    }

    /// Returns the address at which a frame continues. If the frame is to be deoptimised, that is
    /// the address that it had before.
    pub(crate) fn call_of(&self, readable: &mut Readable, layout: &Layout, pc: usize, sp: usize) -> usize {
        let given_back = match layout.tabled {
            Tabled::InBlob { deopt, .. } => deopt.map(|at| readable.word(self.blob.wrapping_add(at))),
            Tabled::Apart { deopt, .. } => deopt.map(|at| self.away(readable, at)),
        };
        if !given_back.contains(&Some(pc)) {
            return pc;
        }
        let offset = half(readable, self.blob.wrapping_add(layout.original_pc));
        let place = offset.map(|offset| sp.wrapping_add_signed(offset.cast_signed() as isize));
        place.and_then(|place| readable.word(place)).unwrap_or(pc)
    }

    /// Returns the address at the distance from the blob's beginning that a field of the blob says.
    fn away(&self, readable: &mut Readable, field: usize) -> Option<usize> {
        Some(self.blob.wrapping_add(half(readable, self.blob.wrapping_add(field))? as usize))
    }

    /// Reads the methods of the call that returns to `pc`, the innermost first, and returns their
    /// number. Returns `None` if they cannot be read.
    pub(crate) fn calls(
        &self,
        readable: &mut Readable,
        layout: &Layout,
        pc: usize,
        calls: &mut [Call; INLINED_MAX],
    ) -> Option<usize> {
        let word = |readable: &mut Readable, at: usize| readable.word(self.blob.wrapping_add(at));
        let distance =
            |readable: &mut Readable, at: usize| Some(half(readable, self.blob.wrapping_add(at))? as usize);
        let (scopes, places, metadata, code) = match layout.tabled {
            Tabled::InBlob { scopes, pcs, metadata, code, .. } => (
                word(readable, scopes)?,
                self.away(readable, pcs)?,
                self.away(readable, metadata)?,
                word(readable, code)?,
            ),
            Tabled::Apart { immutable, scopes, pcs, mutable, relocations_bytes, code, .. } => {
                let immutable = word(readable, immutable)?;
                (
                    immutable.wrapping_add(distance(readable, scopes)?),
                    immutable.wrapping_add(distance(readable, pcs)?),
                    word(readable, mutable)?.wrapping_add(distance(readable, relocations_bytes)?),
                    self.away(readable, code)?,
                )
            }
        };
        let wanted = u32::try_from(pc.checked_sub(code)?).ok()?;
        let mut scope = find_place(readable, places, wanted)?;
        let mut count = 0_usize;
        while scope != 0 {
            let mut numbers = SmallNumbers::new(scopes.checked_add(scope)?, layout.version());
            let caller = numbers.number(readable)? as usize;
            let method = (numbers.number(readable)? as usize).checked_sub(1)?;
            // One more than the instruction; 0: the method's entry.
            let index = numbers.number(readable)?.cast_signed().wrapping_sub(1).max(0);
            let method = readable.word(metadata.checked_add(method.checked_mul(8)?)?)?;
            *calls.get_mut(count)? = Call { method, index };
            count = count.wrapping_add(1);
            scope = caller;
        }
        Some(count)
    }
}

/// Returns the offset of the packed scope for an offset in the code.
fn find_place(readable: &mut Readable, places: usize, wanted: u32) -> Option<usize> {
    for number in 0..PLACES_MAX {
        let at = places.checked_add(number.wrapping_mul(PLACE_BYTES))?;
        let place = half(readable, at)?;
        if place == wanted {
            return Some(half(readable, at.wrapping_add(4))? as usize).filter(|&scope| scope != 0);
        }
        if place == LAST {
            break;
        }
    }
    None
}

fn half(readable: &mut Readable, address: usize) -> Option<u32> {
    Some(u32::from_le_bytes(readable.bytes(address, 4)?.try_into().ok()?))
}

#[inline(always)]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * u128::from(word ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as u64 ^ product as u64 ^ hash.rotate_left(29)
}
