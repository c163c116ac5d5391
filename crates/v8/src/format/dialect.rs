//! Facts on a heap that is not V8's but in its format: the member `heapr` of the header.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::own_slots::OwnSlots;
use crate::languages::{Language, language};

/// Layout of tables of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// Bytes before the first slot.
    pub(crate) header_bytes: u64,
    /// Bytes of a slot.
    pub(crate) slot_bytes: u64,
}

impl Table {
    /// Size that no slot has: slots have sizes of their own.
    const UNEQUAL_BYTES: u64 = 1 << 62;

    /// Whether all slots have one size, so that a store's size tells their number.
    pub(crate) fn has_equal_slots(self) -> bool {
        self.slot_bytes < Self::UNEQUAL_BYTES
    }
}

/// Facts on a heap of another language.
#[derive(Debug, Clone)]
pub struct Dialect {
    /// Runtime and version: `CPython 3.11.2`.
    pub runtime: String,
    /// Whether ids are addresses: an object has the same one as long as it lives, and another may
    /// have it afterwards. Otherwise objects move, and ids say nothing about other snapshots.
    pub ids_are_addresses: bool,
    /// First bit of ids whose bits from there on, if any is set, belong to contents that never
    /// change.
    identity_bit: Option<u32>,
    /// Paths of the scripts, by number.
    pub scripts: Vec<String>,
    pub(crate) language: &'static dyn Language,
    /// Layout of tables, if they are nodes.
    pub(crate) table: Option<Table>,
    /// Layouts of collections whose stores are a part of them, by class.
    own_slots: HashMap<String, OwnSlots>,
    collections: HashSet<String>,
    fixed: HashSet<String>,
    program: HashSet<String>,
}

impl Dialect {
    /// Reads the member of a header, if it has one.
    pub(crate) fn of(header: &Value) -> Option<Self> {
        let own = header.get("heapr")?;
        let texts = |name: &str| {
            let values = own[name].as_array().map(Vec::as_slice).unwrap_or_default();
            values.iter().map(|value| value.as_str().unwrap_or_default().to_owned())
        };
        Some(Self {
            runtime: own["runtime"].as_str()?.to_owned(),
            ids_are_addresses: own["ids"].as_str() == Some("addresses"),
            identity_bit: own["identity_bit"].as_u64().map(|bit| bit.min(63) as u32),
            scripts: texts("scripts").collect(),
            language: language(own["language"].as_str()),
            table: own["table"]["slot_bytes"].as_u64().filter(|&bytes| bytes > 0).map(|slot_bytes| Table {
                header_bytes: own["table"]["header_bytes"].as_u64().unwrap_or(0),
                slot_bytes,
            }),
            own_slots: OwnSlots::all(own),
            collections: texts("collections").collect(),
            fixed: texts("fixed").collect(),
            program: texts("program").collect(),
        })
    }

    /// Whether an id says more of an object than its address: contents that never change.
    pub(crate) fn is_told_by_contents(&self, id: u64) -> bool {
        self.identity_bit.is_some_and(|bit| id >> bit != 0)
    }

    /// Whether instances of a class hold their contents by position or key.
    pub(crate) fn is_collection(&self, class: &str) -> bool {
        self.collections.contains(class)
    }

    /// Layout of the collections of a class whose stores are a part of them.
    pub(crate) fn own_slots(&self, class: &str) -> Option<OwnSlots> {
        self.own_slots.get(class).copied()
    }

    /// Whether instances of a class never change their size.
    pub(crate) fn has_fixed_size(&self, class: &str) -> bool {
        self.fixed.contains(class)
    }

    /// Whether a class is the program's, where that is known by its name. `name` may also be a
    /// node's, or what the name of an object begins with.
    pub(crate) fn is_of_the_program(&self, name: &str) -> bool {
        self.program.contains(self.language.class_of_base(name))
    }
}
