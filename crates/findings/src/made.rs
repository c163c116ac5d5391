//! Invented courses, for tests of the rules.

use heapr_query::Owner;
use heapr_trace::{Amounts, ProcessIndex, StackIndex};

use crate::site::{Held, Site};
use crate::work_time::WorkTime;

/// Time between two moments: a tenth of a second.
pub(crate) const STEP_NS: u64 = 100_000_000;
const BLOCK_BYTES: u64 = 100;

pub(crate) fn times_ns(count: usize) -> Vec<u64> {
    (0..count as u64).map(|place| place * STEP_NS).collect()
}

/// Work by moment, with the same number of blocks made in each step.
pub(crate) fn even_work(count: usize) -> Vec<u64> {
    (0..count as u64).map(|place| place * 1000).collect()
}

/// Site that holds these amounts, in KiB by moment. All blocks that it makes stay live.
pub(crate) fn site(kib: &[u64]) -> Site {
    let held = kib.iter().map(|&kib| {
        let count = (kib << 10) / BLOCK_BYTES;
        Held { bytes: kib << 10, count, made: count, ..Held::default() }
    });
    Site {
        process: ProcessIndex(0),
        owner: Owner::Program,
        is_loading: false,
        number: 0,
        amounts: Amounts::default(),
        stack: StackIndex::EMPTY,
        weight: 1,
        held: held.collect(),
    }
}

/// Process that works at all moments and holds these amounts, in KiB.
pub(crate) fn work(kib: &[u64]) -> WorkTime {
    WorkTime {
        first: 0,
        end: kib.len(),
        live_bytes: kib.iter().map(|kib| kib << 10).collect(),
        end_ns: kib.len() as u64 * STEP_NS,
        ..WorkTime::default()
    }
}
