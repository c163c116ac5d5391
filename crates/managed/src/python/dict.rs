//! Entries of dicts and sets, and attributes of instances.

use super::objects::is_pointer;
use crate::pages::Pages;
use heapr_known::cpython::{Layout, Values};

pub(super) const DICT_USED: u64 = 16;
pub(super) const DICT_KEYS: u64 = 32;
pub(super) const DICT_VALUES: u64 = 40;

/// Largest number of entries of a table of keys; bounds the reading of false sizes.
const ENTRIES_MAX: u64 = 1 << 32;
/// Largest number of attributes that a class's instances share the keys of.
const SHARED_KEYS_MAX: u64 = 254;

/// Bytes before the indices of a table of keys: up to 3.10, and from 3.11 on.
pub(super) const FIRST_KEYS_BYTES: [u64; 2] = [40, 32];

/// Form of a table of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    first_avma: u64,
    entry_bytes: u64,
    key_offset: u64,
    /// Number of entries that are used, deleted ones among them.
    pub(super) entry_count: u64,
    /// Number of entries that fit.
    pub(super) capacity: u64,
    /// Number of entries that instances which share the table have room for now.
    shared_room: u64,
    /// Bytes of the table.
    pub(super) bytes: u64,
}

impl Keys {
    /// Reads the head of a table; `None` if its numbers contradict each other.
    pub(super) fn at(pages: &Pages<'_>, layout: &Layout, keys_avma: u64) -> Option<Self> {
        if !is_pointer(keys_avma) {
            return None;
        }
        let (index_bytes, first, entry_bytes, capacity, entry_count, shared_room);
        if layout.has_small_keys() {
            let [size, index, kind] = [8, 9, 10].map(|offset| pages.byte(keys_avma + offset));
            let (size, index, kind) = (u32::from(size?), u32::from(index?), kind?);
            if size > 40 || index > 44 || kind > 2 {
                return None;
            }
            index_bytes = 1_u64 << index;
            first = FIRST_KEYS_BYTES[1];
            entry_bytes = if kind == 0 { 24 } else { 16 };
            capacity = (1_u64 << size) * 2 / 3;
            entry_count = pages.word(keys_avma + 24)?;
            shared_room = entry_count.saturating_add(pages.word(keys_avma + 16)?).min(SHARED_KEYS_MAX);
        } else {
            let size = pages.word(keys_avma + 8)?;
            if !size.is_power_of_two() || size > 1 << 40 {
                return None;
            }
            let width = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => 8,
            };
            index_bytes = size * width;
            first = FIRST_KEYS_BYTES[0];
            entry_bytes = 24;
            capacity = size * 2 / 3;
            entry_count = pages.word(keys_avma + 32)?;
            shared_room = capacity;
        }
        // The table without entries has a size of 1.
        if entry_count > capacity || entry_count > ENTRIES_MAX {
            return None;
        }
        Some(Self {
            first_avma: keys_avma.checked_add(first + index_bytes)?,
            entry_bytes,
            key_offset: if entry_bytes == 24 { 8 } else { 0 },
            entry_count,
            capacity,
            shared_room,
            bytes: first + index_bytes + capacity * entry_bytes,
        })
    }

    /// Key and value of an entry; either may be 0.
    fn entry(&self, pages: &Pages<'_>, number: u64) -> Option<(u64, u64)> {
        let at_avma = self.first_avma.checked_add(number * self.entry_bytes + self.key_offset)?;
        Some((pages.word(at_avma)?, pages.word(at_avma + 8)?))
    }
}

/// Calls `take` with number, key and value of each entry of a dict. Returns the bytes of its tables
/// that belong to it alone.
pub(super) fn entries(
    pages: &Pages<'_>,
    layout: &Layout,
    dict_avma: u64,
    mut take: impl FnMut(u64, u64, u64),
) -> u64 {
    entries_while(pages, layout, dict_avma, |number, key, value| {
        take(number, key, value);
        true
    })
}

/// Calls `take` with number, key and value of the entries of a dict until it returns false. Returns
/// the bytes of its tables that belong to it alone.
pub(super) fn entries_while(
    pages: &Pages<'_>,
    layout: &Layout,
    dict_avma: u64,
    mut take: impl FnMut(u64, u64, u64) -> bool,
) -> u64 {
    let Some(keys) =
        pages.word(dict_avma + DICT_KEYS).and_then(|keys_avma| Keys::at(pages, layout, keys_avma))
    else {
        return 0;
    };
    let values_avma = pages.word_or_zero(dict_avma + DICT_VALUES);
    if values_avma == 0 {
        for number in 0..keys.entry_count {
            let Some((key, value)) = keys.entry(pages, number).filter(|_| pages.spend(1)) else { break };
            if value != 0 && !take(number, key, value) {
                break;
            }
        }
        // The empty table is shared by all.
        return if keys.capacity == 0 { 0 } else { keys.bytes };
    }
    if !is_pointer(values_avma) {
        return 0;
    }
    let first = if layout.values == Values::Inline { 8 } else { 0 };
    for number in 0..keys.entry_count.min(SHARED_KEYS_MAX) {
        let (Some((key, _)), Some(value)) =
            (keys.entry(pages, number), pages.word(values_avma + first + number * 8))
        else {
            break;
        };
        if value != 0 && !take(number, key, value) {
            break;
        }
    }
    match layout.values {
        Values::None => keys.capacity * 8,
        Values::Beside | Values::Tagged => bytes_with_prefix(pages, Some(&keys), values_avma),
        Values::Inline => inline_bytes(pages, values_avma),
    }
}

/// Bytes of the values of an instance before 3.13. One byte each for the order of the values lies
/// before them, and the number of these bytes, which is rounded up.
fn bytes_with_prefix(pages: &Pages<'_>, keys: Option<&Keys>, first_avma: u64) -> u64 {
    let prefix = u64::from(pages.byte(first_avma.wrapping_sub(1)).unwrap_or(0));
    let most = prefix.saturating_sub(2);
    // The room is that of the instance's beginning, which is not told. The class has that of now.
    let room = keys.map_or(most, |keys| keys.shared_room.clamp(most.saturating_sub(7), most));
    prefix + room * 8
}

/// Bytes of the values of an instance from 3.13 on, if they lie outside of it.
fn inline_bytes(pages: &Pages<'_>, values_avma: u64) -> u64 {
    let [capacity, _, is_inside, _] =
        [0, 1, 2, 3].map(|at| pages.byte(values_avma.wrapping_add(at)).unwrap_or(0));
    let capacity = u64::from(capacity);
    if is_inside == 0 { 8 + capacity * 8 + capacity.next_multiple_of(8) } else { 0 }
}

/// Attributes of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    None,
    /// A dict of its own.
    Dict(u64),
    /// Values without a dict, and the bytes that they take.
    Values {
        /// Address of the first value.
        first_avma: u64,
        bytes: u64,
    },
}

/// Calls `take` with key and value of each attribute that is stored by the class's keys.
pub(super) fn values(
    pages: &Pages<'_>,
    layout: &Layout,
    keys_avma: u64,
    first_avma: u64,
    mut take: impl FnMut(u64, u64),
) {
    let Some(keys) = Keys::at(pages, layout, keys_avma) else { return };
    for number in 0..keys.entry_count.min(SHARED_KEYS_MAX) {
        let (Some((key, _)), Some(value)) = (keys.entry(pages, number), pages.word(first_avma + number * 8))
        else {
            return;
        };
        if value != 0 {
            take(key, value);
        }
    }
}

/// Finds the values of an instance whose dict is managed by the interpreter.
pub(super) fn managed(
    pages: &Pages<'_>,
    layout: &Layout,
    object_avma: u64,
    keys_avma: u64,
    inline_at_avma: Option<u64>,
) -> Attributes {
    let before = |offset: u64| pages.word_or_zero(object_avma.wrapping_sub(offset));
    let array = |first_avma: u64| {
        let keys = Keys::at(pages, layout, keys_avma);
        Attributes::Values { first_avma, bytes: bytes_with_prefix(pages, keys.as_ref(), first_avma) }
    };
    match layout.values {
        Values::None => Attributes::None,
        Values::Beside => match (before(24), before(32)) {
            (0, 0) => Attributes::None,
            (0, first_avma) if is_pointer(first_avma) => array(first_avma),
            (dict, _) if is_pointer(dict) => Attributes::Dict(dict),
            _ => Attributes::None,
        },
        Values::Tagged => match before(24) {
            0 => Attributes::None,
            word if word & 1 == 1 && is_pointer(word + 1) => array(word + 1),
            word if is_pointer(word) => Attributes::Dict(word),
            _ => Attributes::None,
        },
        Values::Inline => match (before(24), inline_at_avma) {
            (dict, _) if is_pointer(dict) => Attributes::Dict(dict),
            (_, Some(at_avma)) if pages.byte(at_avma + 3) == Some(1) => {
                let capacity = u64::from(pages.byte(at_avma).unwrap_or(0));
                let bytes = 8 + capacity * 8 + capacity.next_multiple_of(8);
                Attributes::Values { first_avma: at_avma + 8, bytes }
            }
            _ => Attributes::None,
        },
    }
}
