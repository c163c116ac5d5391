//! Evidence that an object of two snapshots is the same one.
//!
//! An address may be given to another object. Texts, numbers and tuples never change: where their
//! contents are others, the object is another one. A few bits of a hash of the contents show that.
//! The key of the hash is a secret of the interpreter that no file has. A reader without it sees
//! only which contents may be equal.

use super::objects::{self, MODULE_DICT, flag};
use super::reader::Reader;
use super::text::Text;
use super::types::{Form, Type};
use crate::heap::IDENTITIES;

/// Bytes that are read at each end of the contents.
const END_BYTES: usize = 64;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Fields of a bound method: function and object.
const METHOD_BYTES: u64 = 16;
/// Types besides the builtin forms whose instances never change: offset and number of bytes of
/// their contents. Types of these names that a program made have other fields.
const CONSTANT: &[(&str, u64, u64)] = &[
    ("float", 16, 8),
    ("complex", 16, 16),
    ("method", 16, METHOD_BYTES),
    // A hash, made on demand, lies before the contents of these.
    ("datetime.timedelta", 24, 12),
    ("datetime.date", 24, 5),
    ("datetime.datetime", 24, 12),
];

impl Reader<'_, '_> {
    /// Bits of the contents of an object that never change, from 1 on; 0 where they may change.
    pub(super) fn identity_of(&self, avma: u64, of: &Type) -> u8 {
        let Some(key) = self.runtime.hash_key else { return 0 };
        let (offset, byte_count) = match of.form {
            Form::Text => match Text::at(self.pages, avma).and_then(|text| text.contents(self.layout)) {
                Some(contents) => contents,
                None => return 0,
            },
            // The number of digits has the sign.
            Form::Int => (objects::SIZE, 8 + self.item_bytes(avma, of)),
            Form::Bytes => (objects::BYTES_DATA, self.pages.word_or_zero(avma + objects::SIZE)),
            Form::Tuple => {
                let count = self.pages.word_or_zero(avma + objects::SIZE);
                (self.layout.tuple_items, count.saturating_mul(8))
            }
            Form::Module => (MODULE_DICT, 8),
            _ if of.has(flag::HEAP_TYPE) => return 0,
            _ => match CONSTANT.iter().find(|(name, ..)| of.name == *name) {
                Some(&(_, offset, byte_count)) => (offset, byte_count),
                None => return 0,
            },
        };
        let mut hash = mixed(key, byte_count);
        let mut bytes = [0; END_BYTES];
        let last = byte_count.saturating_sub(END_BYTES as u64);
        for start in [0, last] {
            let count = byte_count.min(END_BYTES as u64) as usize;
            let at_avma = avma.checked_add(offset).and_then(|first_avma| first_avma.checked_add(start));
            if !at_avma.is_some_and(|at_avma| self.pages.read(at_avma, &mut bytes[..count])) {
                return 0;
            }
            hash = bytes[..count].chunks(8).fold(hash, |hash, part| {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                mixed(hash, u64::from_le_bytes(word))
            });
            if last == 0 {
                break;
            }
        }
        1 + (hash % u64::from(IDENTITIES)) as u8
    }
}

fn mixed(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(FACTOR);
    product ^ product >> 29
}
