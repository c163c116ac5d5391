//! Fields of objects that all versions share, and tests whether a word may be an object.

use crate::pages::Pages;
use heapr_known::machine::ADDRESS_LIMIT_MAX;

pub(super) const TYPE: u64 = 8;
/// Number of items of an object of variable size.
pub(super) const SIZE: u64 = 16;
/// Bytes of a bytes object.
pub(super) const BYTES_DATA: u64 = 32;
/// Size in bytes of an object without fields.
pub(super) const HEAD_BYTES: u64 = 16;
/// Size in bytes of the collector's words before an object.
pub(super) const COLLECTOR_BYTES: u64 = 16;
/// Size in bytes of the words for dict and weak references before these.
pub(super) const MANAGED_BYTES: u64 = 16;

/// Dict of a module.
pub(super) const MODULE_DICT: u64 = 16;

pub(super) const TYPE_NAME: u64 = 24;
pub(super) const TYPE_BASIC_BYTES: u64 = 32;
pub(super) const TYPE_ITEM_BYTES: u64 = 40;
pub(super) const TYPE_FLAGS: u64 = 168;
pub(super) const TYPE_WEAK_OFFSET: u64 = 208;
pub(super) const TYPE_MEMBERS: u64 = 240;
pub(super) const TYPE_BASE: u64 = 256;
pub(super) const TYPE_DICT: u64 = 264;
pub(super) const TYPE_DICT_OFFSET: u64 = 288;

/// Flags of types.
pub(super) mod flag {
    pub(in super::super) const INLINE_VALUES: u64 = 1 << 2;
    pub(in super::super) const MANAGED_WEAK: u64 = 1 << 3;
    pub(in super::super) const MANAGED_DICT: u64 = 1 << 4;
    pub(in super::super) const HEAP_TYPE: u64 = 1 << 9;
    pub(in super::super) const COLLECTED: u64 = 1 << 14;
    pub(in super::super) const INT: u64 = 1 << 24;
    pub(in super::super) const LIST: u64 = 1 << 25;
    pub(in super::super) const TUPLE: u64 = 1 << 26;
    pub(in super::super) const BYTES: u64 = 1 << 27;
    pub(in super::super) const TEXT: u64 = 1 << 28;
    pub(in super::super) const DICT: u64 = 1 << 29;
    pub(in super::super) const TYPE: u64 = 1 << 31;
}

/// Highest address of a program.
const ADDRESS_LIMIT: u64 = ADDRESS_LIMIT_MAX;

/// Whether a word can be the address of an object or structure.
pub(super) fn is_pointer(word: u64) -> bool {
    word.is_multiple_of(8) && (4096..ADDRESS_LIMIT).contains(&word)
}

/// Returns the type of the object at an address, unverified.
pub(super) fn type_of(pages: &Pages<'_>, object_avma: u64) -> Option<u64> {
    pages.word(object_avma.checked_add(TYPE)?)
}

/// Whether a word can be a reference count. Immortal objects have fixed large ones; from 3.14 on
/// flags lie above 48 bits.
pub(super) fn is_count(word: u64) -> bool {
    let count = word & 0xffff_ffff_ffff;
    count != 0 && count <= u64::from(u32::MAX)
}

/// Returns the number of references to an object by its count; `None` for an immortal one.
pub(super) fn reference_count(word: u64, version: u32) -> Option<u64> {
    let count = word & 0xffff_ffff;
    let is_immortal = version >= 0x030c && count >= 0x3fff_ffff;
    (!is_immortal).then_some(count)
}
