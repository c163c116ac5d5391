//! Answers that need the whole graph. An index has them, so that a second question on a heap of
//! gigabytes reads none of it.

use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::collection_owners::{CollectionOwner, collection_owners};
use super::collections::{CollectionOrder, all_collections, in_order, sort_by_size};
use super::large_owners::{LargeOwner, large_owners};
use super::naming::Naming;
use super::native_holders::{NativeHolder, native_holders};
use super::strings::duplicated_strings;
use crate::devtools::Heap;

/// Number of owners that are kept: as many as a command prints at most.
const OWNERS_KEPT: usize = 100;
/// Number of rows of a list that are kept.
const ROWS_KEPT: usize = 10_000;

/// Answers on one heap. A list that would be longer is cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswers {
    /// Largest owners.
    pub large_owners: Vec<LargeOwner>,
    /// Bytes of copies of texts.
    pub wasted_text_bytes: u64,
    /// Holders of native memory, with the sums of all of them.
    pub native_holders: NativeAnswer,
    /// Collections by the number of what they hold.
    largest_collections: Vec<Collection>,
    /// Collections by the bytes of unused slots.
    emptiest_collections: Vec<Collection>,
    /// Owners of collections by the bytes of unused slots.
    collection_owners: Vec<CollectionOwner>,
}

/// Holders of native memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeAnswer {
    /// Holders, those of most bytes first.
    pub holders: Vec<NativeHolder>,
    /// Number of all holders.
    pub holder_count: u64,
    /// Native bytes of all of them.
    pub native_bytes: u64,
    /// Blocks of all of them.
    pub block_count: u64,
}

impl NativeAnswer {
    /// Finds all holders.
    pub fn of(heap: &Heap, naming: &Naming<'_, Heap>) -> Self {
        let holders = native_holders(heap, naming);
        Self {
            holder_count: holders.len() as u64,
            native_bytes: holders.iter().map(|holder| holder.native_bytes).fold(0, u64::saturating_add),
            block_count: holders.iter().map(|holder| holder.block_count).fold(0, u64::saturating_add),
            holders,
        }
    }
}

impl StoredAnswers {
    /// Computes all answers. The names are those without source maps.
    pub(crate) fn of(heap: &Heap) -> Self {
        let naming = Naming::of(heap);
        let mut all = all_collections(heap);
        let collection_owners = collection_owners(heap, &naming, &all, ROWS_KEPT);
        sort_by_size(&mut all);
        let largest_collections = all.iter().take(ROWS_KEPT).cloned().collect();
        let emptiest_collections = in_order(all, CollectionOrder::Emptiest, ROWS_KEPT);
        let mut native = NativeAnswer::of(heap, &naming);
        native.holders.truncate(ROWS_KEPT);
        Self {
            large_owners: large_owners(heap, &naming, OWNERS_KEPT),
            wasted_text_bytes: duplicated_strings(heap, usize::MAX)
                .iter()
                .map(|found| found.wasted_bytes)
                .fold(0, u64::saturating_add),
            native_holders: native,
            largest_collections,
            emptiest_collections,
            collection_owners,
        }
    }

    /// Returns the `top` owners that retain most; `None` if so many are not kept.
    #[must_use]
    pub fn large_owners(&self, top: usize) -> Option<&[LargeOwner]> {
        beginning(&self.large_owners, top, OWNERS_KEPT)
    }

    /// Returns the `top` collections; `None` if so many are not kept.
    #[must_use]
    pub fn collections(&self, order: CollectionOrder, top: usize) -> Option<&[Collection]> {
        let kept = match order {
            CollectionOrder::Largest => &self.largest_collections,
            CollectionOrder::Emptiest => &self.emptiest_collections,
        };
        beginning(kept, top, ROWS_KEPT)
    }

    /// Returns the `top` owners of collections; `None` if so many are not kept.
    #[must_use]
    pub fn collection_owners(&self, top: usize) -> Option<&[CollectionOwner]> {
        beginning(&self.collection_owners, top, ROWS_KEPT)
    }

    /// Returns the holders of native memory; `None` if more than `top` are wanted and not kept.
    #[must_use]
    pub fn native_holders(&self, top: usize) -> Option<&NativeAnswer> {
        beginning(&self.native_holders.holders, top, ROWS_KEPT).map(|_| &self.native_holders)
    }
}

/// Returns the first rows, unless more of them exist than were kept.
fn beginning<T>(rows: &[T], top: usize, most_kept: usize) -> Option<&[T]> {
    let is_whole = rows.len() < most_kept;
    (is_whole || top <= rows.len()).then(|| &rows[..top.min(rows.len())])
}
