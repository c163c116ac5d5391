//! Python's objects among the blocks of a function: what tells more of them than a recording.

use heapr_table::quantity::percent;
use heapr_trace::HeapId;

use crate::recording::Recording;
use crate::site::Site;

/// Name of the heap of Python's own allocator.
const PYTHON_HEAP: &str = "python";
/// Smallest share of a function's bytes in that heap for the evidence.
const OBJECTS_SHARE: f64 = 0.5;

/// Evidence about a function most of whose memory is of Python's own allocator. A recording does
/// not tell the types of objects, nor why their references are not given back.
pub(crate) fn python_objects(recording: &Recording<'_>, site: &Site) -> Option<String> {
    let names = recording.trace.heap_names().iter();
    let heaps: Vec<HeapId> = names
        .filter(|heap| heap.process == site.process && heap.name == PYTHON_HEAP)
        .map(|heap| heap.heap)
        .collect();
    if heaps.is_empty() {
        return None;
    }
    let (mut all, mut objects) = (0_u64, 0_u64);
    recording.for_each_total(|totals| {
        if recording.is_of(site, totals.stack) {
            let bytes = totals.amounts.peak_bytes.max(totals.amounts.outstanding_bytes);
            all = all.saturating_add(bytes);
            if heaps.contains(&totals.heap) {
                objects = objects.saturating_add(bytes);
            }
        }
    });
    text(objects, all)
}

fn text(objects: u64, all: u64) -> Option<String> {
    (all > 0 && objects as f64 >= all as f64 * OBJECTS_SHARE).then(|| {
        format!(
            "{} of it are small blocks of Python's own allocator, mostly objects: their types, and what refers to them, \
             are told by heapr snapshot take PID at two times while the program runs, and heapr snapshot suspects",
            percent(objects, all)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_of_where_they_are_most() {
        assert!(text(60, 100).is_some_and(|text| text.starts_with("60.0 % of it are small blocks")));
        assert_eq!(text(40, 100), None);
        assert_eq!(text(0, 0), None);
    }
}
