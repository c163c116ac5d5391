//! Slots of collections that are a part of these: their number follows from the size.

use serde_json::{Value, json};

/// Layout of the collections of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnSlots {
    /// Bytes of a collection without its slots.
    pub(crate) head_bytes: u64,
    /// Form of the slots.
    pub(crate) form: SlotForm,
}

/// Form of the slots of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotForm {
    /// References one after the other.
    Items,
    /// Table of a set.
    Set,
    /// Blocks of a deque.
    Blocks,
    /// Table of a dict.
    Keys {
        /// Bytes before its indices.
        head_bytes: u64,
        /// Whether entries without a hash exist, of tables whose keys are all texts.
        has_short_entries: bool,
    },
}

impl OwnSlots {
    /// Describes the layout to heapr's own commands.
    pub(crate) fn json(self, class: &str) -> Value {
        let mut row = json!({"class": class, "head_bytes": self.head_bytes});
        row["form"] = match self.form {
            SlotForm::Items => "items",
            SlotForm::Set => "set",
            SlotForm::Blocks => "blocks",
            SlotForm::Keys { head_bytes, has_short_entries } => {
                row["keys_bytes"] = head_bytes.into();
                row["has_short_entries"] = has_short_entries.into();
                "keys"
            }
        }
        .into();
        row
    }
}
