//! Pages of slots, which have the objects.
//!
//! ```text
//! page, aligned to its size:  record of the page | slot | slot | slot ...
//! record:  size and number of slots, flags, start of the slots, bits of marked slots
//! ```
//! A page is recognised by its record, which leads back to its slots.

use heapr_proc::Mapping;
use rustc_hash::FxHashMap;

use super::values::{Kind, Values};
use crate::error::{Error, Result};
use crate::heap::RuntimePage;

/// In the record of a page: size and number of slots, flags, start.
const SLOT_COUNT: u64 = 2;
const FLAGS: u64 = 12;
const START: u64 = 32;
/// The page was not swept since the last marking: what is not marked is dead.
const BEFORE_SWEEP: u32 = 1;
/// Smallest slot, by which slots are counted in the bits of a page, and largest one.
const UNIT_BYTES: u64 = 40;
const SLOT_BYTES_MAX: u64 = 640;
/// Stands for no object.
const NO_NODE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Page {
    start_avma: u64,
    slot_bytes: u64,
    slot_count: u64,
    /// Index of the first slot among all.
    first: usize,
}

/// A slot: its address and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) avma: u64,
    pub(super) bytes: u64,
}

/// A slot with an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) avma: u64,
    /// At most [`SLOT_BYTES_MAX`].
    pub(super) slot_bytes: u16,
    /// The collector has found that nothing refers to it.
    pub(super) is_dead: bool,
}

/// All slots, and the numbers of their objects.
#[derive(Debug)]
pub(super) struct Slots {
    page_bytes: u64,
    pages: Vec<Page>,
    by_address: FxHashMap<u64, u32>,
    nodes: Vec<u32>,
}

impl Slots {
    /// Finds the pages of a process. `goes_on`: asked for each mapping.
    pub(super) fn find(
        values: Values<'_, '_>,
        mappings: &[Mapping],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let page_bytes = values.layout.page_bytes;
        let mut slots =
            Self { page_bytes, pages: Vec::new(), by_address: FxHashMap::default(), nodes: Vec::new() };
        for mapping in mappings.iter().filter(|it| it.is_writable && !it.is_shared && it.inode == 0) {
            if !goes_on() {
                return Err(Error::GivenUp);
            }
            let Some(mut at_avma) = mapping.start_avma.checked_next_multiple_of(page_bytes) else { continue };
            while at_avma.checked_add(page_bytes).is_some_and(|end_avma| end_avma <= mapping.end_avma) {
                slots.add(values, at_avma)?;
                at_avma += page_bytes;
            }
        }
        Ok(slots)
    }

    fn add(&mut self, values: Values<'_, '_>, body_avma: u64) -> Result<()> {
        let record = values.word(body_avma, 0);
        if !record.is_multiple_of(8) || record == 0 {
            return Ok(());
        }
        let start_avma = values.word(record, START);
        let head = values.word(record, 0);
        let (slot_bytes, slot_count) = (head & 0xffff, head >> (SLOT_COUNT * 8) & 0xffff);
        let is_slot = (UNIT_BYTES..=SLOT_BYTES_MAX).contains(&slot_bytes) && slot_bytes.is_multiple_of(8);
        let offset = start_avma.wrapping_sub(body_avma);
        let is_page = is_slot
            && slot_count > 0
            && (8..self.page_bytes).contains(&offset)
            && offset + slot_bytes * slot_count <= self.page_bytes;
        if !is_page {
            return Ok(());
        }
        if self.nodes.len() + slot_count as usize >= NO_NODE as usize {
            return Err(Error::TooLarge);
        }
        self.by_address.insert(body_avma, self.pages.len() as u32);
        self.pages.push(Page { start_avma, slot_bytes, slot_count, first: self.nodes.len() });
        self.nodes.resize(self.nodes.len() + slot_count as usize, NO_NODE);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// All pages, by address.
    pub(super) fn runtime_pages(&self) -> Vec<RuntimePage> {
        let mut all: Vec<RuntimePage> = self
            .pages
            .iter()
            .map(|page| {
                let slots = &self.nodes[page.first..page.first + page.slot_count as usize];
                let used = slots.iter().filter(|&&node| node != NO_NODE).count() as u64;
                let used_bytes = used.saturating_mul(page.slot_bytes);
                RuntimePage {
                    start_avma: page.start_avma / self.page_bytes * self.page_bytes,
                    bytes: self.page_bytes,
                    free_bytes: self.page_bytes.saturating_sub(used_bytes),
                }
            })
            .collect();
        all.sort_unstable_by_key(|page| page.start_avma);
        all
    }

    /// Numbers the objects in the slots, and returns them in this order.
    pub(super) fn number(&mut self, values: Values<'_, '_>) -> Vec<Found> {
        let mut found = Vec::new();
        for page in &self.pages {
            let body_avma = page.start_avma / self.page_bytes * self.page_bytes;
            let record = values.word(body_avma, 0);
            let flags = values.pages.half(record.wrapping_add(FLAGS)).unwrap_or(0);
            let is_marked = |avma: u64| {
                let unit = (avma - body_avma) / UNIT_BYTES;
                values.word(record, values.layout.page_marks + unit / 64 * 8) >> (unit % 64) & 1 == 1
            };
            for number in 0..page.slot_count {
                let avma = page.start_avma + number * page.slot_bytes;
                if values.kind(avma) == Kind::None {
                    continue;
                }
                self.nodes[page.first + number as usize] = found.len() as u32;
                let is_dead = flags & BEFORE_SWEEP != 0 && !is_marked(avma);
                found.push(Found { avma, slot_bytes: page.slot_bytes as u16, is_dead });
            }
        }
        found
    }

    fn page_of(&self, avma: u64) -> Option<&Page> {
        self.pages.get(*self.by_address.get(&(avma / self.page_bytes * self.page_bytes))? as usize)
    }

    /// Whether an address lies in a page of slots.
    pub(super) fn is_in_page(&self, avma: u64) -> bool {
        self.page_of(avma).is_some()
    }

    /// Number of the object at an address.
    pub(super) fn get(&self, avma: u64) -> Option<u32> {
        if !avma.is_multiple_of(8) {
            return None;
        }
        let page = self.page_of(avma)?;
        let offset = avma.checked_sub(page.start_avma)?;
        if !offset.is_multiple_of(page.slot_bytes) || offset / page.slot_bytes >= page.slot_count {
            return None;
        }
        let node = self.nodes[page.first + (offset / page.slot_bytes) as usize];
        (node != NO_NODE).then_some(node)
    }

    /// Addresses of the pages.
    pub(super) fn bodies(&self) -> impl Iterator<Item = u64> {
        self.by_address.keys().copied()
    }
}
