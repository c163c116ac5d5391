//! Slots of collections whose store counts as a part of them: their number follows from the size.

use std::collections::HashMap;

use serde_json::Value;

/// Form of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// References one after the other.
    Items,
    /// Table of hashes and keys; a small one is inside of the collection.
    Set,
    /// Blocks of references.
    Blocks,
    /// Indices and entries behind a head of so many bytes. Entries of texts may lack a hash.
    Keys { head_bytes: u64, has_short_entries: bool },
}

/// Layout of the collections of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnSlots {
    /// Bytes of a collection without its store.
    head_bytes: u64,
    form: Form,
}

/// Bytes of a reference.
const WORD_BYTES: u64 = 8;
const SET_SLOT_BYTES: u64 = 16;
/// Slots of a set's table that is inside of it.
const SET_INNER_SLOTS: u64 = 8;
const BLOCK_BYTES: u64 = 528;
const BLOCK_SLOTS: u64 = 64;
/// Bytes of an entry of a table of keys: hash, key and value.
const ENTRY_BYTES: u64 = 24;
/// Bytes of an entry without a hash.
const SHORT_ENTRY_BYTES: u64 = 16;
/// Binary logarithms of the sizes of tables of keys.
const KEYS_LOG_SIZES: std::ops::Range<u32> = 3..41;

impl OwnSlots {
    /// Reads the member of a header: layouts by class.
    pub(crate) fn all(own: &Value) -> HashMap<String, Self> {
        let rows = own["own_slots"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = |row: &Value| {
            let form = match row["form"].as_str()? {
                "items" => Form::Items,
                "set" => Form::Set,
                "blocks" => Form::Blocks,
                "keys" => Form::Keys {
                    head_bytes: row["keys_bytes"].as_u64()?,
                    has_short_entries: row["has_short_entries"].as_bool()?,
                },
                _ => return None,
            };
            let layout = Self { head_bytes: row["head_bytes"].as_u64()?, form };
            Some((row["class"].as_str()?.to_owned(), layout))
        };
        rows.iter().filter_map(row).collect()
    }

    /// Number of slots of a collection of that size, and bytes of one; `None` of a size that no
    /// such collection has.
    pub(crate) fn of_size(self, own_bytes: u64) -> Option<(u64, u64)> {
        let store_bytes = own_bytes.checked_sub(self.head_bytes)?;
        match self.form {
            Form::Items => Some((store_bytes / WORD_BYTES, WORD_BYTES)),
            Form::Set if store_bytes == 0 => Some((SET_INNER_SLOTS, SET_SLOT_BYTES)),
            Form::Set => Some((store_bytes / SET_SLOT_BYTES, SET_SLOT_BYTES)),
            Form::Blocks => Some((store_bytes / BLOCK_BYTES * BLOCK_SLOTS, WORD_BYTES)),
            Form::Keys { .. } if store_bytes == 0 => Some((0, ENTRY_BYTES)),
            Form::Keys { head_bytes, has_short_entries } => {
                keys(store_bytes.checked_sub(head_bytes)?, has_short_entries)
            }
        }
    }

    /// Whether each item is by a reference named `key`, beside that to its value.
    pub(crate) fn has_keys(self) -> bool {
        matches!(self.form, Form::Keys { .. })
    }
}

/// Number of entries that fit into a table of so many bytes, and bytes of one. Two thirds of the
/// indices are used at most.
fn keys(bytes: u64, has_short_entries: bool) -> Option<(u64, u64)> {
    let entries = [ENTRY_BYTES, SHORT_ENTRY_BYTES];
    let entries = if has_short_entries { &entries[..] } else { &entries[..1] };
    let mut sizes = KEYS_LOG_SIZES;
    sizes.find_map(|log_size| {
        let size = 1_u64 << log_size;
        let index_bytes = match log_size {
            0..8 => 1,
            8..16 => 2,
            16..32 => 4,
            _ => 8,
        };
        let count = size * 2 / 3;
        let is_of = |&&entry_bytes: &&u64| size * index_bytes + count * entry_bytes == bytes;
        entries.iter().find(is_of).map(|&entry_bytes| (count, entry_bytes))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_follow_from_sizes() {
        let layouts = OwnSlots::all(&json!({"own_slots": [
            {"class": "list", "head_bytes": 56, "form": "items"},
            {"class": "set", "head_bytes": 216, "form": "set"},
            {"class": "collections.deque", "head_bytes": 232, "form": "blocks"},
            {"class": "dict", "head_bytes": 64, "form": "keys", "keys_bytes": 32,
             "has_short_entries": true},
            {"class": "old", "head_bytes": 64, "form": "keys", "keys_bytes": 40, "has_short_entries": false},
            {"class": "other", "head_bytes": 64, "form": "unknown"},
        ]}));
        assert_eq!(layouts.len(), 5);
        let of = |class: &str, bytes| layouts[class].of_size(bytes).map(|(count, _)| count);
        assert_eq!([56, 88, 120].map(|bytes| of("list", bytes)), [Some(0), Some(4), Some(8)]);
        assert_eq!([216, 728].map(|bytes| of("set", bytes)), [Some(8), Some(32)]);
        assert_eq!([760, 1288].map(|bytes| of("collections.deque", bytes)), [Some(64), Some(128)]);
        // As sys.getsizeof says of 3.11: empty, of texts, of others, and of 100 numbers.
        let dicts = [64, 184, 224, 4688].map(|bytes| of("dict", bytes));
        assert_eq!(dicts, [Some(0), Some(5), Some(5), Some(170)]);
        // Values of an instance whose class has the keys.
        assert_eq!(of("dict", 64 + 40), None);
        assert_eq!(of("dict", 10), None);
        // As of 3.8.
        assert_eq!([232, 360].map(|bytes| of("old", bytes)), [Some(5), Some(10)]);
        assert_eq!(layouts["dict"].of_size(u64::MAX), None);
    }

    #[test]
    fn no_two_tables_of_keys_have_one_size() {
        let mut sizes: Vec<_> = (0..1 << 16).step_by(8).filter_map(|bytes| keys(bytes, true)).collect();
        let count = sizes.len();
        sizes.dedup();
        assert_eq!(sizes.len(), count);
        assert!(count >= 18, "{count}");
    }
}
