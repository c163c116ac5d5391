//! Objects of Ruby: the flags in their first word, and contents of texts, arrays and tables.

use super::layout::Layout;
use crate::pages::Pages;

/// Offset of the class. The contents begin behind it.
pub(super) const CLASS: u64 = 8;
pub(super) const CONTENTS: u64 = 16;
/// Bits of the kind in the first word, and bit of the first flag of a kind's own.
const KIND: u64 = 0x1f;
pub(super) const OWN_FLAGS_SHIFT: u32 = 12;
/// Flags of all kinds: variables in a table beside the object.
pub(super) const HAS_VARIABLES_BESIDE: u64 = 1 << 10;
/// Flags of kinds: contents outside (strings) or inside (objects, arrays); contents of another.
pub(super) const OUTSIDE_OR_INSIDE: u64 = 1 << 13;
pub(super) const SHARED: u64 = 1 << 14;
/// A string's buffer is not its own to free.
pub(super) const NOT_FREED: u64 = 1 << 30;
/// A class of one object.
pub(super) const SINGLETON: u64 = 1 << 12;
/// A hash has a table of the larger form.
pub(super) const LARGE_TABLE: u64 = 1 << 15;
/// Number of used entries of a small table.
const SMALL_USED_SHIFT: u32 = 20;
const SMALL_ENTRIES: u64 = 8;
/// Shift of an array's number of items inside of it, and of a struct's.
const ARRAY_INSIDE_SHIFT: u32 = 15;
const STRUCT_INSIDE_SHIFT: u32 = 13;
/// Largest number of bytes of a text that are read.
const TEXT_BYTES_MAX: u64 = 4096;
/// `st_table`: entries with room for 2 to this power, bins, first and last entry, entries.
const ENTRY_POWER: u64 = 0;
const BINS: u64 = 24;
const FIRST_ENTRY: u64 = 32;
const ENTRIES_END: u64 = 40;
const ENTRIES: u64 = 48;
pub(super) const TABLE_BYTES: u64 = 56;
const ENTRY_BYTES: u64 = 24;
/// `rb_id_table`: room, and items of a key, a mark, and a value.
const ID_ITEMS: u64 = 16;
const ID_ITEM_BYTES: u64 = 16;
const ID_TABLE_BYTES: u64 = 24;
/// Constant: value and file, in an entry of its own.
pub(super) const CONSTANT_VALUE: u64 = 8;
/// Hash of a deleted entry.
const DELETED: u64 = u64::MAX;

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Object,
    Class,
    Module,
    Float,
    Text,
    Pattern,
    Array,
    Hash,
    Struct,
    Bignum,
    File,
    Data,
    Match,
    Pair,
    Symbol,
    Internal,
    Included,
    /// A slot of no object, or of one that is being made.
    None,
}

impl Kind {
    pub(super) fn of(flags: u64) -> Self {
        match flags & KIND {
            1 => Self::Object,
            2 => Self::Class,
            3 => Self::Module,
            4 => Self::Float,
            5 => Self::Text,
            6 => Self::Pattern,
            7 => Self::Array,
            8 => Self::Hash,
            9 => Self::Struct,
            10 => Self::Bignum,
            11 => Self::File,
            12 => Self::Data,
            13 => Self::Match,
            14 | 15 => Self::Pair,
            20 => Self::Symbol,
            26 => Self::Internal,
            28 => Self::Included,
            _ => Self::None,
        }
    }
}

/// Memory with the layout of its objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'p, 'm> {
    pub(super) pages: &'p Pages<'m>,
    pub(super) layout: &'static Layout,
}

impl Values<'_, '_> {
    pub(super) fn flags(self, avma: u64) -> u64 {
        self.word(avma, 0)
    }

    pub(super) fn kind(self, avma: u64) -> Kind {
        Kind::of(self.flags(avma))
    }

    /// Word at an offset of an address; 0 if it cannot be read.
    pub(super) fn word(self, avma: u64, offset: u64) -> u64 {
        self.pages.word_or_zero(avma.wrapping_add(offset))
    }

    /// Number of 32 bits at an offset; 0 if it cannot be read.
    pub(super) fn half(self, avma: u64, offset: u64) -> u64 {
        self.pages.half(avma.wrapping_add(offset)).unwrap_or(0).into()
    }

    /// Address and number of bytes of a text.
    pub(super) fn text_bytes(self, avma: u64) -> (u64, u64) {
        let flags = self.flags(avma);
        let bytes = if self.layout.has_string_size_in_flags && flags & OUTSIDE_OR_INSIDE == 0 {
            flags >> 14 & 0x1f
        } else {
            self.word(avma, CONTENTS)
        };
        let from = if flags & OUTSIDE_OR_INSIDE == 0 {
            avma.wrapping_add(self.layout.string_inside)
        } else {
            self.word(avma, 24)
        };
        (from, bytes)
    }

    /// Text of a string's object; its beginning if it is longer than `most` bytes.
    pub(super) fn text(self, avma: u64, most: u64) -> Option<String> {
        if self.kind(avma) != Kind::Text {
            return None;
        }
        let (from, bytes) = self.text_bytes(avma);
        let mut read = vec![0; bytes.min(most).min(TEXT_BYTES_MAX) as usize];
        self.pages.read(from, &mut read).then(|| String::from_utf8_lossy(&read).into_owned())
    }

    /// Address and number of the items of an array.
    pub(super) fn items(self, avma: u64) -> (u64, u64) {
        let flags = self.flags(avma);
        if flags & OUTSIDE_OR_INSIDE != 0 {
            return (avma + CONTENTS, (flags & self.layout.array_inside_mask) >> ARRAY_INSIDE_SHIFT);
        }
        (self.word(avma, 32), self.word(avma, CONTENTS))
    }

    /// Item of an array.
    pub(super) fn item(self, array_avma: u64, number: u64) -> Option<u64> {
        let (first, count) = self.items(array_avma);
        (number < count).then(|| self.word(first, number.wrapping_mul(8)))
    }

    /// Address and number of the members of a struct.
    pub(super) fn members(self, avma: u64) -> (u64, u64) {
        match (self.flags(avma) & self.layout.struct_inside_mask) >> STRUCT_INSIDE_SHIFT {
            0 => (self.word(avma, 24), self.word(avma, CONTENTS)),
            count => (avma + CONTENTS, count),
        }
    }

    /// Table of a hash: its address, and whether it is of the larger form.
    pub(super) fn hash_table(self, avma: u64) -> (u64, bool) {
        let is_large = self.flags(avma) & LARGE_TABLE != 0;
        let at = self.layout.hash_table;
        (if self.layout.has_table_inside { avma + at } else { self.word(avma, at) }, is_large)
    }

    /// Calls `take` with the keys and values of a hash.
    pub(super) fn hash_entries(self, avma: u64, take: impl FnMut(u64, u64)) {
        let (table, is_large) = self.hash_table(avma);
        if is_large {
            return self.entries(table, take);
        }
        if table == 0 {
            return;
        }
        // A table inside of the object has the hints before the pairs.
        let first = if self.layout.has_table_inside { table.wrapping_add(8) } else { table };
        let used = (self.flags(avma) >> SMALL_USED_SHIFT & 0xf).min(SMALL_ENTRIES);
        self.pairs(first, used, 16, 0, take);
    }

    /// Calls `take` with pairs of `each` bytes, whose first word is at `offset`.
    fn pairs(self, first: u64, count: u64, each: u64, offset: u64, mut take: impl FnMut(u64, u64)) {
        for number in 0..count {
            let at_avma = first.wrapping_add(number.wrapping_mul(each)).wrapping_add(offset);
            let (Some(key), true) = (self.pages.word(at_avma), self.pages.spend(1)) else { return };
            if key != self.layout.undefined {
                take(key, self.word(at_avma, 8));
            }
        }
    }

    /// Calls `take` with the keys and values of an `st_table`.
    pub(super) fn entries(self, table: u64, mut take: impl FnMut(u64, u64)) {
        self.entries_while(table, |key, value| {
            take(key, value);
            true
        });
    }

    /// Calls `take` with the keys and values of an `st_table` until it returns false.
    pub(super) fn entries_while(self, table: u64, mut take: impl FnMut(u64, u64) -> bool) {
        let Some(room) = self.room_of(table) else { return };
        let entries = self.word(table, ENTRIES);
        let end = self.word(table, ENTRIES_END).min(room);
        for number in self.word(table, FIRST_ENTRY)..end {
            let at_avma = entries.wrapping_add(number.wrapping_mul(ENTRY_BYTES));
            let (Some(hash), true) = (self.pages.word(at_avma), self.pages.spend(1)) else { return };
            if hash != DELETED && !take(self.word(at_avma, 8), self.word(at_avma, 16)) {
                return;
            }
        }
    }

    /// Number of entries that an `st_table` has room for; `None` for memory of another form.
    fn room_of(self, table: u64) -> Option<u64> {
        let power = self.pages.byte(table.wrapping_add(ENTRY_POWER))?;
        (table != 0 && power < 40).then(|| 1 << power)
    }

    /// Bytes of an `st_table` and what belongs to it.
    pub(super) fn table_bytes(self, table: u64) -> u64 {
        let Some(room) = self.room_of(table) else { return 0 };
        let (bin_power, size) =
            (self.pages.byte(table.wrapping_add(1)), self.pages.byte(table.wrapping_add(2)));
        let bins = if self.word(table, BINS) == 0 {
            0
        } else {
            let bins = 1_u64 << u32::from(bin_power.unwrap_or(0)).min(40);
            (bins << u32::from(size.unwrap_or(0)).min(3)).max(8)
        };
        TABLE_BYTES + bins + room * ENTRY_BYTES
    }

    /// Addresses of the memory of an `st_table` besides the table: bins and entries.
    pub(super) fn parts_of_table(self, table: u64) -> [u64; 2] {
        [self.word(table, BINS), self.word(table, ENTRIES)]
    }

    /// Calls `take` with the keys (numbers of names) and values of an `rb_id_table`.
    pub(super) fn id_entries(self, table: u64, mut take: impl FnMut(u64, u64)) {
        self.id_entries_while(table, |key, value| {
            take(key, value);
            true
        });
    }

    /// Calls `take` with the keys and values of an `rb_id_table` until it returns false.
    pub(super) fn id_entries_while(self, table: u64, mut take: impl FnMut(u64, u64) -> bool) {
        let items = self.word(table, ID_ITEMS);
        for number in 0..self.id_room(table) {
            let at_avma = items.wrapping_add(number * ID_ITEM_BYTES);
            let (Some(key), true) = (self.pages.half(at_avma), self.pages.spend(1)) else { return };
            if key != 0 && !take(key.into(), self.word(at_avma, 8)) {
                return;
            }
        }
    }

    fn id_room(self, table: u64) -> u64 {
        if table == 0 { 0 } else { self.pages.half(table).unwrap_or(0).into() }
    }

    /// Bytes of an `rb_id_table` and its items; 0 without a table.
    pub(super) fn id_table_bytes(self, table: u64) -> u64 {
        if table == 0 { 0 } else { ID_TABLE_BYTES + self.id_room(table) * ID_ITEM_BYTES }
    }

    /// Address of an `rb_id_table`'s items.
    pub(super) fn id_items(self, table: u64) -> u64 {
        self.word(table, ID_ITEMS)
    }

    /// Rest of a class, with its tables.
    pub(super) fn class_rest(self, class_avma: u64) -> u64 {
        if self.layout.has_class_rest_inside { class_avma + 32 } else { self.word(class_avma, 24) }
    }

    /// Table of the methods of a class.
    pub(super) fn methods(self, class_avma: u64) -> u64 {
        if self.layout.has_class_rest_inside {
            self.word(class_avma, self.layout.methods)
        } else {
            self.word(self.class_rest(class_avma), self.layout.methods)
        }
    }

    /// Name of the native structure of a `Data`, and the address of that.
    pub(super) fn structure(self, avma: u64) -> (Option<String>, u64) {
        let typed = self.word(avma, 24);
        let is_typed = matches!(typed, 1 | 3);
        let name = is_typed.then(|| self.pages.text(self.word(self.word(avma, 16), 0), 64)).flatten();
        // A structure may lie inside of the object.
        let data = if typed == 3 { avma + 32 } else { self.word(avma, 32) };
        (name, data)
    }
}
