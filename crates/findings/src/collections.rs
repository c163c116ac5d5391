//! Native memory that rises and falls at once, again and again, in the process of a runtime with a
//! collector. Blocks whose owners wait for a collection do that.

use std::collections::HashSet;

use heapr_known::runtimes::{self, Runtime};
use heapr_query::{Confidence, Owner, file_name};
use heapr_table::quantity::percent;
use heapr_trace::{ProcessIndex, Trace};

use crate::finding::{Chosen, Finding, Kind};
use crate::growth::judged_moments;
use crate::recording::Recording;
use crate::site::{Held, Site};

/// Smallest number of falls.
const FALLS_MIN: usize = 3;
/// Smallest part of what was held that a fall frees, and largest number of steps that it takes.
const FALL_SHARE: f64 = 0.5;
const FALL_STEPS: usize = 2;
/// Smallest amount before a fall that is reported: in bytes, and as a share of the most that is
/// live.
const HELD_MIN_BYTES: u64 = 4 << 20;
const HELD_MIN_SHARE: f64 = 0.25;
/// Smallest share of rising steps among those that are no part of a fall.
const RISING_MIN: f64 = 0.75;
/// Smallest number of steps for each fall. Batches and noise fall every few steps.
const STEPS_PER_FALL: usize = 4;
/// Largest half interval of what was held before a fall, one part in so many of it.
const UNSURE_PART: u64 = 4;

/// Falls of a curve.
#[derive(Debug, PartialEq, Eq)]
struct SawTooth {
    /// Amounts before and after each fall: indices of moments.
    falls: Vec<(usize, usize)>,
}

impl SawTooth {
    /// Finds the falls. `None`: they are few, small or slow, or the amounts do not rise between.
    fn of(held: &[u64], most_live: u64) -> Option<Self> {
        let least = HELD_MIN_BYTES.max((most_live as f64 * HELD_MIN_SHARE) as u64);
        let mut falls: Vec<(usize, usize)> = Vec::new();
        let (mut rising, mut steps, mut place) = (0_usize, 0_usize, 0_usize);
        while place + 1 < held.len() {
            let end = (place + FALL_STEPS).min(held.len() - 1);
            let low = (place + 1..=end).min_by_key(|&at| held[at]).unwrap_or(end);
            let is_fall = held[place] >= least
                && held[place + 1] < held[place]
                && held[low] as f64 <= held[place] as f64 * FALL_SHARE;
            if is_fall {
                falls.push((place, low));
                place = low;
                continue;
            }
            steps += 1;
            rising += usize::from(held[place + 1] > held[place]);
            place += 1;
        }
        let is_steady = rising as f64 >= steps as f64 * RISING_MIN && steps >= falls.len() * STEPS_PER_FALL;
        (falls.len() >= FALLS_MIN && is_steady).then_some(Self { falls })
    }
}

/// Finding about the function with the highest such curve.
pub(crate) fn between_collections(recording: &Recording<'_>) -> Option<Finding> {
    let collected = collected_processes(recording.trace);
    if collected.is_empty() {
        return None;
    }
    let is_judged = |site: &&Site| site.owner == Owner::Program && collected.contains(&site.process);
    let sites = recording.sites.iter().filter(is_judged);
    let found = sites.filter_map(|site| {
        let (saw, from) = saw_tooth(recording, site)?;
        let top = saw.falls.iter().map(|&(top, _)| site.held[from + top].bytes).max()?;
        Some((top, site, saw, from))
    });
    let (top, site, saw, from) =
        found.max_by_key(|(top, site, ..)| (*top, std::cmp::Reverse(site.number)))?;
    let at = saw.falls.iter().map(|&(top, _)| from + top).max_by_key(|&at| site.held[at].bytes)?;
    let (own_frame, name) = recording.name(site);
    let through = recording.through(site.stack);
    let low = saw.falls.iter().map(|&(_, low)| site.held[from + low]).max_by_key(|held| held.bytes)?;
    let said = recording.said;
    let sentence = format!(
        "Memory rises and falls as between collections: {} holds up to {}, and falls {} times at once, to {} at most.",
        through.named(name),
        said.held(site.held[at].live()),
        saw.falls.len(),
        said.bytes_of(low.live()),
    );
    let work = &recording.processes[site.process.0 as usize];
    let most = work.live_bytes.iter().copied().max().unwrap_or(0);
    let mut evidence = vec![
        format!(
            "{} of the most that was live; the process has a runtime with a collector",
            percent(top, most.max(top))
        ),
        "native memory whose owners wait for a collection falls like this; closing them (close, end, dispose) frees it \
         at once, if it is so"
            .to_owned(),
    ];
    evidence.extend(through.path);
    let chosen = Chosen {
        at: Some(format!("{}ns", recording.times_ns[at])),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let Held { bytes, .. } = site.held[at];
    let finding = Finding {
        kind: Kind::Peak,
        sentence,
        confidence: Confidence::Low,
        own_frame: Some(own_frame),
        bytes,
        bytes_plus_minus: site.held[at].live().bytes_plus_minus(),
        evidence,
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}

/// Curve of a site in the judged moments, and the first of them. `None`: it has another form, or
/// the amounts are too uncertain to tell it.
fn saw_tooth(recording: &Recording<'_>, site: &Site) -> Option<(SawTooth, usize)> {
    let work = &recording.processes[site.process.0 as usize];
    let (from, to) = judged_moments(&recording.work_done, work)?;
    let held: Vec<u64> = site.held.get(from..=to)?.iter().map(|held| held.bytes).collect();
    let most = work.live_bytes.iter().copied().max().unwrap_or(0);
    let saw = SawTooth::of(&held, most)?;
    let is_unsure = |&(top, _): &(usize, usize)| {
        let held = site.held[from + top];
        held.live().bytes_plus_minus().saturating_mul(UNSURE_PART) > held.bytes
    };
    (!saw.falls.iter().any(is_unsure)).then_some((saw, from))
}

/// Processes with a runtime whose collector frees native memory.
fn collected_processes(trace: &Trace) -> HashSet<ProcessIndex> {
    let collects = |path: &str| {
        let file = file_name(path);
        let runtime = runtimes::of_library(file).or_else(|| runtimes::of_program(file));
        runtime.is_some_and(|runtime| runtime.is_v8() || matches!(runtime, Runtime::Jvm | Runtime::Bun))
    };
    let modules: Vec<bool> = trace.modules().iter().map(|module| collects(&module.path)).collect();
    let has_one = |module: u32| modules.get(module as usize).is_some_and(|&collects| collects);
    let mappings = trace.mappings().iter().filter(|mapping| has_one(mapping.module.0));
    mappings.map(|mapping| mapping.process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn falls(mib: impl Iterator<Item = u64>) -> Option<usize> {
        let held: Vec<u64> = mib.map(|mib| mib * MIB).collect();
        let most = held.iter().copied().max().unwrap_or(0);
        SawTooth::of(&held, most).map(|saw| saw.falls.len())
    }

    #[test]
    fn a_curve_that_rises_and_falls_at_once_is_told() {
        assert_eq!(falls((0..40).map(|at| 2 + at % 10)), Some(3));
        // A fall that takes two steps.
        assert_eq!(falls((0..50).map(|at| [2, 4, 6, 8, 10, 12, 14, 16, 18, 9][at % 10])), Some(5));
    }

    #[test]
    fn other_curves_are_not_told() {
        assert_eq!(falls(0..40), None, "growth");
        assert_eq!(falls((0..40).map(|_| 20)), None, "a cache");
        assert_eq!(falls((0..40).map(|at| 2 + at % 20)), None, "one fall");
        assert_eq!(falls((0..40).map(|at| if at % 2 == 0 { 20 } else { 1 })), None, "batches");
        assert_eq!(falls((0..40).map(|at| if at % 2 == 1 { 20 } else { 1 })), None, "batches seen later");
        let mut state = 7_u64;
        let noise = (0..40).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 20
        });
        assert_eq!(falls(noise), None, "noise without a rhythm");
        assert_eq!(
            falls((0..40).map(|at| if at % 10 < 9 { 20 } else { 1 })),
            None,
            "a buffer that is emptied"
        );
        assert_eq!(falls((0..40).map(|at| 10 + (at * 7 % 5))), None, "noise");
        let slow = (0..60).map(|at| if at % 20 < 10 { 2 + at % 20 } else { 22 - at % 20 });
        assert_eq!(falls(slow), None, "falls as slow as it rises");
        assert_eq!(SawTooth::of(&(0..40).map(|at| 2 + at % 10).collect::<Vec<_>>(), 11), None, "bytes");
    }
}
