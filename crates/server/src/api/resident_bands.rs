//! Resident memory over time, by class, as stacked bands.

use heapr_query::Span;
use heapr_table::SortRows as _;
use heapr_trace::{ProcessIndex, ResidentSample, Trace};

/// Bands from below, each with a value per bin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResidentBands {
    pub(super) bands: Vec<Band>,
    /// Sum of the bands.
    pub(super) all_bytes: Vec<u64>,
}

/// A band.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) name: &'static str,
    pub(super) values: Vec<u64>,
    /// Whether the band is computed from live bytes, and shares their interval.
    pub(super) is_by_live: bool,
}

const NAMES: [(&str, bool); 4] =
    [("live blocks", true), ("without a file, not live", true), ("files", false), ("shared memory", false)];

impl ResidentBands {
    /// Computes the bands of the processes `pids` (all if empty) from samples and live bytes.
    pub(super) fn of(trace: &Trace, pids: &[u32], time: Span, live_bytes: &[u64]) -> Self {
        let samples = trace.resident_samples();
        let is_chosen = |process: ProcessIndex| {
            let process = trace.processes().get(process.0 as usize);
            process.is_some_and(|process| pids.is_empty() || pids.contains(&process.pid))
        };
        let mut processes: Vec<ProcessIndex> = samples.iter().map(|sample| sample.process).collect();
        processes.sort_unstable_by_key(|process| process.0);
        processes.dedup();
        let mut sums = vec![[0_u64; 3]; live_bytes.len()];
        for process in processes.into_iter().filter(|process| is_chosen(*process)) {
            let mut own: Vec<&ResidentSample> =
                samples.iter().filter(|sample| sample.process == process).collect();
            own.sort_rows_by_key(|sample| sample.time_ns);
            let end_ns = trace.processes().get(process.0 as usize).and_then(|process| process.end_ns);
            add(&own, end_ns.unwrap_or(u64::MAX), time, &mut sums);
        }
        let mut bands =
            NAMES.map(|(name, is_by_live)| Band { name, values: Vec::with_capacity(sums.len()), is_by_live });
        for ([anonymous, files, shared], live) in sums.iter().zip(live_bytes) {
            // Blocks that were never written are live but not resident.
            let live = *live.min(anonymous);
            for (band, value) in bands.iter_mut().zip([live, anonymous - live, *files, *shared]) {
                band.values.push(value);
            }
        }
        let all = |sums: &[u64; 3]| sums.iter().copied().fold(0, u64::saturating_add);
        Self { all_bytes: sums.iter().map(all).collect(), bands: bands.into() }
    }
}

/// Adds a process; a sample's amounts hold until the next one.
fn add(samples: &[&ResidentSample], end_ns: u64, time: Span, sums: &mut [[u64; 3]]) {
    let bins = sums.len().max(1) as u128;
    let length = u128::from(time.to.saturating_sub(time.from));
    for (bin, sums) in sums.iter_mut().enumerate() {
        let middle_ns = time.from.saturating_add(((2 * bin as u128 + 1) * length / (2 * bins)) as u64);
        let behind = samples.partition_point(|sample| sample.time_ns <= middle_ns);
        let Some(sample) = behind.checked_sub(1).and_then(|at| samples.get(at)) else { continue };
        if middle_ns > end_ns {
            continue;
        }
        let amounts = [sample.anonymous_bytes, sample.file_bytes, sample.shared_memory_bytes];
        for (sum, amount) in sums.iter_mut().zip(amounts) {
            *sum = sum.saturating_add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_looks_the_first_one_holds_and_an_ended_process_has_nothing() {
        let sample = |time_ns, anonymous_bytes| ResidentSample {
            time_ns,
            anonymous_bytes,
            file_bytes: 7,
            ..ResidentSample::default()
        };
        let (first, second) = (sample(100, 1000), sample(250, 3000));
        let mut sums = vec![[0; 3]; 5];
        add(&[&first, &second], 420, Span { from: 0, to: 500 }, &mut sums);
        let expected = [[0; 3], [1000, 7, 0], [3000, 7, 0], [3000, 7, 0], [0; 3]];
        assert_eq!(sums, expected);
    }
}
