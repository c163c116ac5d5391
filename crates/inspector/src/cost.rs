//! Estimate of a snapshot's costs for the process.
//!
//! V8 stops the program and builds the whole snapshot in its own memory before it sends the first
//! byte. Measured with heaps of small objects (about 30 bytes each), Node 20 to 26:
//!
//! ```text
//! heap in use      pause        memory on top     file
//!     64 MB      2.9 s             0.76 GB       100 MB      Node 24
//!     85 MB     3.6 to 7.0 s       0.8 GB        140 MB      Node 20 to 26
//!    188 MB        21.7 s          1.5 GB        428 MB      Node 20, objects of two fields and a short string
//!    588 MB        50.9 s          5.5 GB       1017 MB      Node 20
//!     19 MB         4.4 s          0.24 GB        29 MB      Node 16 and 18
//!     61 MB        37.1 s          0.84 GB       106 MB      Node 16 and 18: with the square of the heap
//! ```
//! The memory depends on the contents of the heap. V8 takes these bytes for each of them:
//!
//! ```text
//! object             120       its entry, and two tables from which it is found
//!                   + 24       for each place of a table that is at most 4/5 full, a power of 2
//! reference           32       large arrays: 90 twice, as element of the list and of its storage
//! string             130       its name in two tables, and its text, cut at 1,024 characters
//! position         1 050       a name in a buffer of 1 KiB: of the longest array, or of the list
//!                              of unique strings, which has one for each, where that is longer
//! pair of a WeakMap 3 150      three such names
//! number                       nothing; with numeric values as an object
//! nothing at all   4 to 25 MB  by version
//! ```
//! With the counts of the snapshot itself, the estimate is right to 5 to 13 % (90 heaps, by
//! version). A heap of long strings takes its own size, one of small objects 10 times its size. A
//! list with 8 bytes per element takes 95 times its size. The counts come from a sample of the
//! process's memory, garbage included. If that memory cannot be read, only the size of the heap is
//! known.

use std::time::Duration;

use super::heap_shape::HeapShape;
use super::inspector::HeapUsage;
use super::memory::{MemoryLimit, MemoryRoom};

const OBJECT_BYTES: u64 = 132;
const TABLE_PLACE_BYTES: u64 = 24;
const STRING_BYTES: u64 = 170;
const NUMERIC_VALUE_BYTES: u64 = 380;
const REFERENCE_BYTES: u64 = 39;
const WEAK_PAIR_BYTES: u64 = 3 * POSITION_BYTES;
const LARGE_ARRAY_REFERENCE_BYTES: u64 = 190;
const POSITION_BYTES: u64 = 1_080;
/// Number of V8's own unique strings, which lie outside of the sampled memory.
const OWN_UNIQUE_STRINGS: u64 = 4_000;
/// Bytes for the smallest heap: V8's own objects, and the sending thread.
const EXTRA_BASE_BYTES: u64 = 25 << 20;
const EXTRA_BASE_BYTES_22: u64 = 11 << 20;
const EXTRA_BASE_BYTES_20: u64 = 6 << 20;
const EXTRA_BASE_BYTES_18: u64 = 4 << 20;
/// Divisor of a count: a sample may see too little by this fraction.
const SCATTER_PART: u64 = 32;
/// Divisor of the heap in use: additional memory of unknown kinds.
const PART_OF_USED: u64 = 10;
/// Likely part of the largest estimate, in tenths.
const LIKELY_TENTHS: u64 = 7;
/// Memory of a heap that was not counted, in tenths of the heap in use. The first value is for
/// objects of usual size, the second for the smallest objects in a list.
const UNCOUNTED_TENTHS: u64 = 100;
const UNCOUNTED_TENTHS_MAX: u64 = 380;
/// File size, in tenths of the heap in use.
const FILE_TENTHS: u64 = 25;
const FILE_BASE_BYTES: u64 = 4 << 20;
/// Pause per 1,000,000 bytes of heap in use, in microseconds.
const PAUSE_PER_MB_US: u128 = 100_000;
const PAUSE_BASE_US: u128 = 200_000;
/// Pause per (1,000,000 bytes)² before Node 20, in microseconds.
const OLD_PAUSE_PER_MB_SQUARED_US: u128 = 12_000;
const FIRST_FAST_NODE: u32 = 20;
/// Memory left free, in bytes: other processes get killed before all memory is used.
const RESERVE_BYTES: u64 = 64 << 20;

/// Facts about a heap that are known before a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct HeapFacts {
    /// Size of the heap.
    pub usage: HeapUsage,
    /// Contents of the heap, if they could be counted.
    pub shape: Option<HeapShape>,
    /// Whether numbers get nodes of their own.
    pub has_numeric_values: bool,
    /// Major version of Node; `None` for other programs.
    pub node_major: Option<u32>,
}

/// Estimated costs of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Time during which the thread does nothing else.
    pub pause: Duration,
    /// Bytes of memory that the process likely takes in addition, and returns afterwards.
    pub extra_bytes: u64,
    /// Largest number of bytes that the process takes in addition.
    pub extra_max_bytes: u64,
    /// Bytes of the snapshot file.
    pub file_bytes: u64,
}

/// Reason against taking a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Danger {
    /// The process, or another one, would likely be killed.
    Memory {
        /// Bytes that the process may need.
        extra_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
        /// Origin of the limit.
        limited_by: MemoryLimit,
    },
    /// The file may not fit on the disk.
    Disk {
        /// Bytes that the file may need.
        file_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
}

/// Estimates the costs of a snapshot of a heap.
pub fn estimate(facts: HeapFacts) -> Estimate {
    let HeapFacts { usage, shape, node_major, .. } = facts;
    let tenths = |tenths: u64| (usage.used_bytes / 10).saturating_mul(tenths);
    let used_bytes = u128::from(usage.used_bytes);
    let mut pause_us = PAUSE_BASE_US + used_bytes * PAUSE_PER_MB_US / 1_000_000;
    if node_major.is_some_and(|major| major < FIRST_FAST_NODE) {
        let used_kb = used_bytes / 1000;
        pause_us += used_kb * used_kb * OLD_PAUSE_PER_MB_SQUARED_US / 1_000_000;
    }
    let base_bytes = match node_major {
        Some(..20) => EXTRA_BASE_BYTES_18,
        Some(20..22) => EXTRA_BASE_BYTES_20,
        Some(22..24) => EXTRA_BASE_BYTES_22,
        _ => EXTRA_BASE_BYTES,
    };
    let (extra_bytes, extra_max_bytes) = match shape {
        Some(shape) => {
            let most = extra_of(shape, facts).saturating_add(usage.used_bytes / PART_OF_USED);
            (most / 10 * LIKELY_TENTHS, most)
        }
        None => (tenths(UNCOUNTED_TENTHS), tenths(UNCOUNTED_TENTHS_MAX)),
    };
    Estimate {
        pause: Duration::from_micros(u64::try_from(pause_us).unwrap_or(u64::MAX)),
        extra_bytes: extra_bytes.saturating_add(base_bytes / 10 * LIKELY_TENTHS),
        extra_max_bytes: extra_max_bytes.saturating_add(base_bytes),
        file_bytes: tenths(FILE_TENTHS).saturating_add(FILE_BASE_BYTES),
    }
}

fn extra_of(shape: HeapShape, facts: HeapFacts) -> u64 {
    let HeapShape {
        objects,
        unique_strings,
        strings,
        text_bytes,
        references,
        numbers,
        large_array_references,
        longest_array,
        longest_small_array,
        weak_pairs,
    } = shape;
    // Each position is named once, however many arrays have it.
    let positions = large_array_references
        .min(longest_array)
        .max(longest_small_array)
        .max(unique_strings.saturating_add(OWN_UNIQUE_STRINGS));
    let numbers = if facts.has_numeric_values { objects.saturating_add(numbers) } else { 0 };
    let with_scatter = |count: u64| count.saturating_add(count / SCATTER_PART);
    // The next power of 2 must hold even if the count is slightly too low.
    let filled_places = with_scatter(objects.saturating_add(objects / 4));
    let table_places = filled_places.checked_next_power_of_two().unwrap_or(u64::MAX);
    let seen_bytes = [
        (objects, OBJECT_BYTES),
        (table_places, TABLE_PLACE_BYTES),
        (references, REFERENCE_BYTES),
        (large_array_references, LARGE_ARRAY_REFERENCE_BYTES),
        (positions, POSITION_BYTES),
        (numbers, NUMERIC_VALUE_BYTES),
        (unique_strings.saturating_add(strings), STRING_BYTES),
        (text_bytes, 1),
        (weak_pairs, WEAK_PAIR_BYTES),
    ]
    .iter()
    .fold(0, |sum: u64, (count, bytes)| sum.saturating_add(count.saturating_mul(*bytes)));
    with_scatter(seen_bytes)
}

/// Returns the reasons against taking a snapshot.
pub fn dangers(estimate: Estimate, room: &MemoryRoom, disk_free_bytes: Option<u64>) -> Vec<Danger> {
    let mut dangers = Vec::new();
    let Estimate { extra_bytes, file_bytes, .. } = estimate;
    if extra_bytes.saturating_add(RESERVE_BYTES) > room.free_bytes {
        let limited_by = room.limited_by.clone();
        dangers.push(Danger::Memory { extra_bytes, free_bytes: room.free_bytes, limited_by });
    }
    if let Some(free_bytes) = disk_free_bytes
        && file_bytes > free_bytes
    {
        dangers.push(Danger::Disk { file_bytes, free_bytes });
    }
    dangers
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1_000_000;

    fn of_heap(used_bytes: u64) -> Estimate {
        of_heap_in(used_bytes, 20)
    }

    fn of_heap_in(used_bytes: u64, node_major: u32) -> Estimate {
        let usage = HeapUsage { used_bytes, total_bytes: used_bytes };
        let node_major = Some(node_major);
        estimate(HeapFacts { usage, shape: None, has_numeric_values: false, node_major })
    }

    #[test]
    fn the_estimate_holds_for_what_was_measured() {
        // Columns: Node, heap in MB, pause in ms, additional memory in MB, file in MB.
        for (major, heap, pause_ms, extra, file) in [
            (24, 64, 2_900, 765, 100),
            (20, 85, 7_000, 804, 143),
            (20, 588, 50_900, 5_451, 1017),
            (16, 19, 4_400, 237, 29),
            (18, 61, 37_100, 840, 106),
            (20, 77, 7_700, 1_336, 161),
        ] {
            let estimate = of_heap_in(heap * MEGABYTE, major);
            let what = format!("{heap} MB in Node {major}: {estimate:?}");
            assert!((pause_ms..pause_ms * 5 / 2).contains(&estimate.pause.as_millis()), "{what}");
            let range = estimate.extra_bytes * 9 / 10..estimate.extra_max_bytes;
            assert!(range.contains(&(extra * MEGABYTE)), "{what}");
            assert!((file * MEGABYTE..file * MEGABYTE * 2).contains(&estimate.file_bytes), "{what}");
        }
    }

    #[test]
    fn a_heap_that_does_not_fit_ten_times_is_a_danger() {
        let room = |free_bytes| MemoryRoom { free_bytes, limited_by: MemoryLimit::Machine };
        assert_eq!(dangers(of_heap(100 * MEGABYTE), &room(2000 * MEGABYTE), Some(1000 * MEGABYTE)), []);
        let found = dangers(of_heap(100 * MEGABYTE), &room(1000 * MEGABYTE), Some(100 * MEGABYTE));
        assert!(matches!(found[..], [Danger::Memory { .. }, Danger::Disk { .. }]), "{found:?}");
    }

    #[test]
    fn absurd_heaps_do_not_overflow() {
        assert_eq!(of_heap_in(u64::MAX, 12).extra_bytes, u64::MAX);
    }
}
