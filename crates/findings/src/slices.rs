//! Large blocks of which only slices are used, by a snapshot with references.
//!
//! The scan of the snapshot has found numbers that fit as lengths beside the references to such a
//! block. It has also found that these lengths cover less than an eighth of it. A number beside a
//! reference may be something else than a length: the sentences say "likely".

use heapr_query::{Confidence, Owner};
use heapr_table::quantity::plural;
use heapr_trace::StackIndex;

use crate::finding::{Chosen, Finding, Kind};
use crate::lost_blocks::LostBlocks;
use crate::recording::Recording;
use crate::site::Site;
use crate::sliced_sums::SlicedSums;

/// Smallest share of a function's bytes in such blocks that its growth is explained by.
const OF_GROWTH_SHARE: f64 = 0.5;
/// Smallest amount for a finding of its own: in bytes, and as a share of what was live at most.
const SLICES_MIN_BYTES: u64 = 1 << 20;
const SLICES_MIN_SHARE: f64 = 0.1;

/// Part of a sentence on growth, if slices likely keep half of what the function holds.
pub(crate) fn slices_of(recording: &Recording<'_>, site: &Site) -> Option<String> {
    let referred = recording.referred(site.process)?;
    let (sums, all_bytes) = referred.sliced(|stack| recording.is_of(site, stack));
    of_growth(sums, all_bytes, &recording.when(referred.time_ns()))
}

fn of_growth(sums: SlicedSums, all_bytes: u64, when: &str) -> Option<String> {
    let is_most = sums.bytes > 0 && sums.bytes as f64 >= all_bytes as f64 * OF_GROWTH_SHARE;
    is_most.then(|| {
        format!(
            "likely slices keep it: the lengths beside the references to {} of it cover {} {when}",
            plural(sums.count, "block"),
            sums.covered()
        )
    })
}

/// Finding about the function with most bytes in such blocks. `growing`: functions whose growth is
/// told.
pub(crate) fn slices(recording: &Recording<'_>, growing: &[&Site]) -> Option<Finding> {
    let sums_of = |site: &Site| {
        let referred = recording.referred(site.process)?;
        Some((referred, referred.sliced(|stack| recording.is_of(site, stack)).0))
    };
    let is_told = |site: &Site| growing.iter().any(|told| std::ptr::eq(*told, site));
    let sites = recording.sites.iter().filter(|site| site.owner != Owner::Runtime && !is_told(site));
    let (site, (referred, sums)) = sites
        .filter_map(|site| Some((site, sums_of(site)?)))
        .max_by_key(|(site, (_, sums))| (sums.bytes, std::cmp::Reverse(site.number)))?;
    is_much(sums, recording.peak().bytes.value).then(|| finding(recording, site, referred, sums))
}

fn is_much(sums: SlicedSums, peak_bytes: u64) -> bool {
    sums.bytes >= SLICES_MIN_BYTES && sums.bytes as f64 >= peak_bytes as f64 * SLICES_MIN_SHARE
}

fn finding(recording: &Recording<'_>, site: &Site, referred: &LostBlocks, sums: SlicedSums) -> Finding {
    let is_of_it = |stack: StackIndex| recording.is_of(site, stack);
    let stack = referred.most_sliced(is_of_it).unwrap_or(site.stack);
    let (own_frame, name) = recording.name_at(site, stack);
    let through = recording.through(stack);
    let chosen = Chosen {
        at: Some(format!("{}ns", referred.time_ns())),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let mut evidence = vec![
        "numbers that fit as lengths stand beside the references to them; that they are lengths is a guess"
            .to_owned(),
        "if they are, copies of what is used would let the blocks be freed".to_owned(),
    ];
    let named = through.named(name);
    evidence.extend(through.path);
    let finding = Finding {
        kind: Kind::Slices,
        sentence: format!(
            "Slices likely keep large blocks: {named} made {} that are live {}, and the lengths beside the references \
             to them cover {}.",
            plural(sums.count, "block"),
            recording.when(referred.time_ns()),
            sums.covered(),
        ),
        confidence: Confidence::Medium,
        evidence,
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: sums.bytes,
        ..Finding::default()
    };
    finding.choosing(chosen, &recording.file)
}

#[cfg(test)]
mod tests {
    use heapr_trace::SlicedBlock;

    use super::*;

    const MANY: SlicedSums = SlicedSums { count: 4000, bytes: 4000 << 14, covered_bytes: 4000 << 4 };

    #[test]
    fn growth_is_explained_by_slices_only_if_they_keep_half_of_it() {
        let told = "likely slices keep it: the lengths beside the references to 4,000 blocks of it cover 62.5 KiB of \
                    62.5 MiB (16 B of 16.0 KiB each) at 1 s";
        assert_eq!(of_growth(MANY, MANY.bytes * 2, "at 1 s").as_deref(), Some(told));
        assert_eq!(of_growth(MANY, MANY.bytes * 2 + 1, "at 1 s"), None);
        assert_eq!(of_growth(SlicedSums::default(), 0, "at 1 s"), None);
    }

    #[test]
    fn few_slices_and_a_small_share_are_no_finding() {
        assert!(is_much(MANY, MANY.bytes * 10));
        assert!(!is_much(MANY, MANY.bytes * 11));
        assert!(!is_much(SlicedSums { bytes: SLICES_MIN_BYTES - 1, ..MANY }, 1));
    }

    #[test]
    fn a_length_counts_for_no_more_than_its_block() {
        let mut sums = SlicedSums::default();
        sums.add(100, &SlicedBlock { node: 0, view_count: 1, covered_bytes: 1000 });
        assert_eq!(sums, SlicedSums { count: 1, bytes: 100, covered_bytes: 100 });
        assert_eq!(sums.covered(), "100 B of 100 B");
    }
}
