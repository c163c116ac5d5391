//! Cache of the first objects of a class in an order. An index contains them already. Without one,
//! those of large classes are found while the page shows the classes in this order. A class of
//! millions of objects then opens at once, too.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use heapr_v8::devtools::NodeSet;
use heapr_v8::view::{Listed, ObjectOrder, ObjectQuery, ObjectRow, Page};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::snapshot_file::{FirstKey, FirstObjects, SnapshotFile};

/// Number of cached rows of a class: two pages.
pub(super) const KEPT_ROWS: usize = 400;
/// Number of objects from which a class is prepared; the sort takes a few ms.
const LARGE: u64 = 20_000;
/// Largest number of classes that are prepared.
const PREPARED_MAX: usize = 24;
/// Number of threads that prepare classes.
const THREADS: usize = 2;

/// Query for the objects of some classes that have bytes of their own.
pub(super) fn query_of<'a>(classes: &'a [u32], only: Option<&'a NodeSet>) -> ObjectQuery<'a> {
    ObjectQuery { classes: Some(classes), self_bytes: Some((1, u64::MAX)), only, ..ObjectQuery::default() }
}

impl FirstObjects {
    /// Returns the cached objects, or finds them.
    pub(super) fn of(file: &SnapshotFile, key: &FirstKey, cancel: &Cancel) -> Result<Arc<Self>> {
        file.first_objects.get(key, cancel, |_| {
            let (classes, order, is_from_start) = key;
            let list = |page| file.view.search(&query_of(classes, None), *order, page);
            let told = |error| file.error(&error);
            let mut listed = if *is_from_start {
                list(Page::top(KEPT_ROWS)).map_err(told)?
            } else {
                let total_count = list(Page::top(0)).map_err(told)?.total_count as usize;
                let count = KEPT_ROWS.min(total_count);
                list(Page { first: total_count - count, count }).map_err(told)?
            };
            if !is_from_start {
                listed.rows.reverse();
            }
            let nodes = listed.rows.iter().map(|row| row.node).collect();
            Ok(Self { nodes, total_count: listed.total_count })
        })
    }

    /// Some of the rows.
    pub(super) fn listed(
        &self,
        file: &SnapshotFile,
        offset: usize,
        limit: usize,
    ) -> Result<Listed<ObjectRow>> {
        let nodes = self.nodes.iter().skip(offset).take(limit);
        let rows = nodes.map(|&node| file.view.row(node).map_err(|error| file.error(&error)));
        Ok(Listed { rows: rows.collect::<Result<_>>()?, total_count: self.total_count })
    }
}

/// Finds the first objects of the large classes among `classes` (key and number of objects) in this
/// order, once.
pub(super) fn prepare<'a>(
    file: &Arc<SnapshotFile>,
    classes: impl Iterator<Item = (&'a str, u64)>,
    (order, is_from_start): (ObjectOrder, bool),
) {
    if file.has_index() {
        return;
    }
    {
        let mut prepared = file.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.contains(&(order, is_from_start)) {
            return;
        }
        prepared.push((order, is_from_start));
    }
    let large = classes.filter(|&(_, count)| count >= LARGE).take(PREPARED_MAX);
    let keys: Arc<Vec<String>> = Arc::new(large.map(|(key, _)| key.to_owned()).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let threads = THREADS.min(keys.len());
    for _ in 0..threads {
        let (file, keys, next) = (Arc::clone(file), Arc::clone(&keys), Arc::clone(&next));
        std::thread::spawn(move || {
            // The preparing threads stop when they are the file's only holders.
            while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed))
                && Arc::strong_count(&file) > threads
            {
                let Ok(mut classes) = file.view.classes_named(key) else { return };
                classes.sort_unstable();
                // An error is reported to the request that asks for this class.
                let _ = FirstObjects::of(&file, &(classes, order, is_from_start), &Cancel::default());
            }
        });
    }
}
