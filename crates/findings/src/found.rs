//! All findings of a recording, the most important first.

use heapr_query::engine::SymbolTree;
use heapr_query::{Confidence, SymbolSource, file_name};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, plural};
use heapr_trace::{MemoryPart, Trace};

use crate::all_growth::all_growth;
use crate::collections::between_collections;
use crate::finding::{Finding, Kind, OwnFrame};
use crate::growth::growing;
use crate::judged::Judged;
use crate::mapped_files::mapped_files;
use crate::recording::{Names, Recording};
use crate::site::Site;
use crate::threads::threads;
use crate::together::AtPeak;
use crate::unread::{self, Sight};
use crate::whole_growth::whole_growth;
use crate::{churn, held, peak, seen, slices, together};

/// Largest number of findings of an answer.
const FINDINGS_MAX: usize = 5;
/// Largest number of findings about growth of single functions.
const OF_KIND_MAX: usize = 3;

/// Findings of a recording or of snapshots.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Findings, the most important first; at most five.
    pub findings: Vec<Finding>,
    /// Sentence that is shown above the findings, or in their place.
    pub verdict: String,
    /// Largest number of live bytes; only for recordings.
    pub peak_bytes: Option<u64>,
    /// Half of the 95 % interval of `peak_bytes`, if that is an estimate; else 0.
    pub peak_bytes_plus_minus: u64,
    /// End of the program's work, when it began to free its memory; `None`: it did not free a large
    /// part.
    pub work_end_ns: Option<u64>,
    /// True if the file was unreadable, so that nothing can be judged.
    pub is_unread: bool,
}

/// Finds what stands out in a recording.
///
/// # Errors
/// Returns an error if the recording cannot be read.
pub fn of_recording(
    trace: &Trace,
    judged: Judged<'_>,
    symbols: &mut dyn SymbolSource,
) -> heapr_query::Result<Found> {
    let names = Names { known: None, symbols: Some(symbols) };
    Ok(found(&Recording::new(trace, judged, names)?))
}

/// Variant of [`of_recording`] with the known names of all stacks.
///
/// # Errors
/// Returns the errors of [`of_recording`].
pub fn of_named_recording(
    trace: &Trace,
    judged: Judged<'_>,
    names: &SymbolTree,
) -> heapr_query::Result<Found> {
    let names = Names { known: Some(names), symbols: None };
    Ok(found(&Recording::new(trace, judged, names)?))
}

/// Variant of [`of_recording`] with the known names of all stacks or some. A report has named most
/// of them.
///
/// # Errors
/// Returns the errors of [`of_recording`].
pub fn of_reported_recording(
    trace: &Trace,
    judged: Judged<'_>,
    names: &SymbolTree,
    symbols: &mut dyn SymbolSource,
) -> heapr_query::Result<Found> {
    let names = Names { known: Some(names), symbols: Some(symbols) };
    Ok(found(&Recording::new(trace, judged, names)?))
}

fn found(recording: &Recording<'_>) -> Found {
    let mut growing = growing(recording);
    let together = together::growing(recording, &growing);
    if let Some((process, _)) = &together {
        growing.retain(|growing| growing.site.process != *process);
    }
    let is_together = together.is_some();
    let sites: Vec<&Site> = growing.iter().map(|growing| growing.site).collect();
    let mut findings: Vec<Finding> =
        growing.iter().take(OF_KIND_MAX).map(|growing| growing.finding(recording)).collect();
    findings.extend(together.map(|(_, finding)| finding));
    if findings.is_empty() {
        findings.extend(whole_growth(recording).or_else(|| all_growth(recording, &[])));
    } else if !is_together {
        findings.extend(all_growth(recording, &growing));
    }
    findings.extend(threads(recording));
    findings.extend(unread::unread(recording));
    findings.extend(seen::loss(recording));
    findings.extend(seen::frees(recording));
    let at_peak = AtPeak::new(recording);
    findings.extend(seen::resident(recording, &at_peak));
    findings.extend(mapped_files(recording));
    let peak = peak::peak(recording, &at_peak, &sites);
    let idle = held::idle(recording);
    findings.extend(churn::churn(recording));
    // A function whose growth is told does not fall back.
    let falling = between_collections(recording)
        .filter(|falling| !findings.iter().any(|known| is_growth_of(known, falling)));
    let peak = peak.filter(|peak| falling.as_ref().is_none_or(|falling| falling.own_frame != peak.own_frame));
    findings.extend(falling);
    findings.extend(told_once(peak, idle));
    findings.extend(held::small_blocks(recording));
    findings.extend(slices::slices(recording, &sites));
    findings.iter_mut().for_each(tell_what_would_name);
    for finding in &mut findings {
        if finding.bytes_plus_minus == 0 {
            finding.bytes_plus_minus = recording.half_of_bytes(finding.bytes);
        }
        if finding.curve_plus_minus.is_empty() {
            finding.curve_plus_minus = recording.halves_of_curve(&finding.curve);
        }
    }
    let no_growth = match tells_growth(recording) {
        true => no_growth(recording),
        false => NoGrowth::Unknown { moment_count: recording.whole_course.count() },
    };
    let verdict = verdict(&findings, Sight::of(recording), no_growth, || peak::largest(recording, &at_peak));
    Found {
        work_end_ns: recording.work_end_ns(),
        is_unread: unread::is_unread(recording),
        findings: ranked(findings),
        verdict,
        peak_bytes: Some(recording.summary.totals.peak_bytes),
        peak_bytes_plus_minus: recording.peak().bytes_plus_minus(),
    }
}

/// True if `known` tells growth of the function of `other`.
fn is_growth_of(known: &Finding, other: &Finding) -> bool {
    known.kind == Kind::Growth && known.own_frame == other.own_frame
}

/// Merges a peak with the idle memory of the same function into one finding.
fn told_once(peak: Option<Finding>, idle: Option<Finding>) -> Vec<Finding> {
    match (peak, idle) {
        (Some(mut peak), Some(idle)) if peak.own_frame == idle.own_frame => {
            // The second sentence says since when the memory is idle.
            peak.evidence.push(idle.sentence);
            peak.evidence.extend(idle.evidence);
            vec![peak]
        }
        (peak, idle) => peak.into_iter().chain(idle).collect(),
    }
}

/// Adds advice on how to get names for a module without symbols.
fn tell_what_would_name(finding: &mut Finding) {
    let Some(OwnFrame { symbol: None, module: Some(module), .. }) = &finding.own_frame else { return };
    finding.evidence.push(format!(
        "{} has no names of functions here: its debug package (-dbgsym, -debuginfo), DEBUGINFOD_URLS or \
         --symbol-path DIR would give them",
        file_name(module)
    ));
}

/// Sorts findings, the most important first: by certainty, then by harm, then by size. Growth of
/// unknown size is not taken for small.
pub(crate) fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    let size = |finding: &Finding| match (finding.kind, finding.bytes) {
        (Kind::Growth, 0) => u64::MAX,
        (_, bytes) => bytes,
    };
    findings.sort_rows_by_key(|finding| {
        std::cmp::Reverse((finding.confidence, std::cmp::Reverse(harm(finding.kind)), size(finding)))
    });
    findings.truncate(FINDINGS_MAX);
    findings
}

/// Rank of a kind by harm: continuing harm comes first.
fn harm(kind: Kind) -> u8 {
    match kind {
        Kind::Growth => 0,
        Kind::Unseen => 1,
        Kind::Frees => 2,
        Kind::Resident => 3,
        Kind::Peak => 4,
        Kind::Churn => 5,
        Kind::Slices => 6,
        Kind::Duplicates => 7,
        Kind::Idle => 8,
        Kind::Overhead => 9,
    }
}

/// Whether growth would have been seen: the recording has events, or enough moments.
fn tells_growth(recording: &Recording<'_>) -> bool {
    recording.trace.event_count() > 0 || recording.whole_course.tells_growth()
}

/// Evidence of a recording in which growth would be seen.
fn no_growth(recording: &Recording<'_>) -> NoGrowth {
    match (mostly_unseen(recording.trace), growth_by_chance(recording)) {
        (unseen, Some(up_to)) => NoGrowth::Sampled { up_to, unseen },
        (Some(unseen), None) => NoGrowth::InBlocks { unseen },
        (None, None) => NoGrowth::Seen,
    }
}

/// Words for the largest growth of a process that samples leave room for; `None` if amounts are
/// counts.
fn growth_by_chance(recording: &Recording<'_>) -> Option<String> {
    /// Number of mean periods that hold no sample in one of twenty recordings.
    const UNSAMPLED_PERIODS: u64 = 3;
    let sampling = recording.trace.sampling();
    let mean_bytes = sampling.largest_mean_bytes().filter(|_| !sampling.is_exact())?;
    let of_samples = recording.processes.iter().map(|work| {
        let (first, last) = (work.live_bytes.first().copied().unwrap_or(0), work.last_bytes());
        let half = recording.half_of_bytes(first.saturating_add(last));
        last.saturating_sub(first).saturating_add(half)
    });
    let unsampled = mean_bytes.saturating_mul(UNSAMPLED_PERIODS);
    Some(bytes(of_samples.max()?.saturating_add(unsampled)))
}

/// Words for the memory of the largest process that is in no recorded block, if that is most of it.
fn mostly_unseen(trace: &Trace) -> Option<String> {
    /// Smallest amount that is told: a program without a heap of its own has less.
    const LEAST_BYTES: u64 = 4 << 20;
    /// Heaps whose blocks only a recording of all allocations has.
    const LEFT_OUT: [&str; 2] = ["PHP's memory manager", "LuaJIT's allocator"];
    /// Smallest part of the memory, one in so many: of all blocks, and of samples.
    const PARTS: [u64; 2] = [2, 4];
    let account = trace.memory_accounts().iter().max_by_key(|account| account.anonymous_bytes)?;
    let unseen = account.unseen_bytes();
    if unseen < LEAST_BYTES || unseen < account.anonymous_bytes / PARTS[usize::from(trace.is_sampled())] {
        return None;
    }
    let largest = account.parts.iter().filter(|part| part.is_unseen).max_by_key(|part| part.bytes);
    let of = largest.map(|part| format!(", {} of them {}", bytes(part.bytes), part.kind)).unwrap_or_default();
    let is_left_out =
        |part: &MemoryPart| part.kind.owners().iter().any(|name| LEFT_OUT.contains(&name.as_str()));
    let why = match trace.is_sampled() && largest.is_some_and(is_left_out) {
        true => "; a recording without --sample has its blocks",
        false => "",
    };
    Some(format!("{} of {} are in none{of}{why}", bytes(unseen), bytes(account.anonymous_bytes)))
}

/// Evidence behind the absence of a finding of growth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoGrowth {
    /// Growth would have been seen.
    Seen,
    /// A single moment, in which nothing can grow.
    OneMoment,
    /// Growth would have been seen if it were large.
    Sampled {
        /// Words for the growth that the samples leave room for.
        up_to: String,
        /// Words for memory in no block, if that is much.
        unseen: Option<String>,
    },
    /// Growth would have been seen in blocks only, and most memory is in none.
    InBlocks {
        /// Words for that memory.
        unseen: String,
    },
    /// The file has too few moments to see growth.
    Unknown {
        /// Number of moments besides the last one and the peak.
        moment_count: usize,
    },
}

/// Sentence for recordings with little or no findings. It is limited to the part that was seen.
pub(crate) fn verdict(
    findings: &[Finding],
    sight: Sight,
    no_growth: NoGrowth,
    largest: impl FnOnce() -> Option<String>,
) -> String {
    let grows =
        findings.iter().any(|finding| finding.kind == Kind::Growth && finding.confidence > Confidence::Low);
    let may_grow = findings.iter().any(|finding| finding.kind == Kind::Growth);
    let seen = match sight {
        Sight::Whole => "",
        Sight::Part => " in the part that was recorded and read",
        Sight::Nothing if findings.is_empty() => {
            return "No allocation was recorded: nothing can be said of the program's memory.".to_owned();
        }
        Sight::Nothing => return String::new(),
    };
    let largest = || largest().map(|largest| format!(" {largest}")).unwrap_or_default();
    match (grows, no_growth, findings.is_empty()) {
        (true, ..) => String::new(),
        // A card of growth that is only possible stands below.
        (false, NoGrowth::Seen, false) if may_grow => format!("No growth is certain{seen}."),
        (false, NoGrowth::Seen, false) => format!("Nothing grows{seen}."),
        // The largest holder answers more than the absence of growth.
        (false, NoGrowth::Seen, true) => {
            format!("{} Nothing grows{seen}; nothing stands out.", largest()).trim_start().to_owned()
        }
        (false, NoGrowth::Sampled { up_to, unseen }, is_empty) => {
            let rest = match unseen {
                Some(unseen) => format!(" Whether memory outside of blocks grows is not known: {unseen}."),
                None if is_empty => format!(" Nothing stands out.{}", largest()),
                None => String::new(),
            };
            format!("No growth is seen{seen}; the samples leave room for up to {up_to} of it.{rest}")
        }
        (false, NoGrowth::OneMoment, false) => String::new(),
        (false, NoGrowth::OneMoment, true) => format!("Nothing stands out{seen}.{}", largest()),
        (false, NoGrowth::InBlocks { unseen }, _) => {
            format!(
                "What was recorded in blocks does not grow{seen}; whether the rest does is not known: {unseen}."
            )
        }
        (false, NoGrowth::Unknown { moment_count }, is_empty) => {
            let moments = match moment_count {
                0 => "no moment but the last and the peak".to_owned(),
                count => plural(count as u64, "moment"),
            };
            let rest = if is_empty && sight == Sight::Whole {
                format!(" Nothing stands out.{}", largest())
            } else {
                String::new()
            };
            format!("Whether memory grows is not known: the file tells {moments}.{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, confidence: Confidence, symbol: Option<&str>, bytes: u64) -> Finding {
        let own_frame = OwnFrame {
            module: Some("/usr/bin/shop".to_owned()),
            symbol: symbol.map(str::to_owned),
            ..OwnFrame::default()
        };
        let sentence = format!("{} of {bytes}.", kind.name());
        Finding { kind, sentence, confidence, own_frame: Some(own_frame), bytes, ..Finding::default() }
    }

    #[test]
    fn the_surest_stand_first_then_what_harms_most_then_the_largest() {
        use Confidence::{High, Low, Medium};
        let all = [(Kind::Churn, High, 1), (Kind::Growth, Medium, 9), (Kind::Growth, High, 2)];
        let more = [(Kind::Growth, High, 5), (Kind::Idle, Low, 99), (Kind::Peak, Medium, 50)];
        let all = all.into_iter().chain(more).map(|(kind, sure, bytes)| of(kind, sure, Some("f"), bytes));
        let ranked = ranked(all.collect());
        let order: Vec<(Kind, u64)> = ranked.iter().map(|finding| (finding.kind, finding.bytes)).collect();
        let wanted =
            [(Kind::Growth, 5), (Kind::Growth, 2), (Kind::Churn, 1), (Kind::Growth, 9), (Kind::Peak, 50)];
        assert_eq!(order, wanted);
    }

    #[test]
    fn a_peak_that_its_function_goes_on_holding_is_told_once() {
        let peak = || Some(of(Kind::Peak, Confidence::Medium, Some("load"), 64));
        let idle = |symbol| Some(of(Kind::Idle, Confidence::Medium, Some(symbol), 60));
        let one = told_once(peak(), idle("load"));
        assert_eq!(one.len(), 1);
        assert!(one[0].kind == Kind::Peak && one[0].evidence == ["idle of 60."], "{one:?}");
        assert_eq!(told_once(peak(), idle("keep")).len(), 2);
        assert_eq!(told_once(None, idle("load")).len(), 1);
    }

    #[test]
    fn code_without_names_says_what_would_name_it() {
        let mut finding = of(Kind::Growth, Confidence::High, None, 1);
        tell_what_would_name(&mut finding);
        assert!(finding.evidence[0].starts_with("shop has no names of functions"), "{finding:?}");
        let mut named = of(Kind::Growth, Confidence::High, Some("f"), 1);
        tell_what_would_name(&mut named);
        assert!(named.evidence.is_empty());
    }

    #[test]
    fn that_nothing_grows_is_said_of_what_was_seen() {
        let said = |findings: &[Finding], sight| {
            verdict(findings, sight, NoGrowth::Seen, || Some("f holds 9.".to_owned()))
        };
        assert_eq!(said(&[], Sight::Whole), "f holds 9. Nothing grows; nothing stands out.");
        assert_eq!(
            said(&[of(Kind::Peak, Confidence::High, None, 1)], Sight::Part),
            "Nothing grows in the part that was recorded and read."
        );
        assert_eq!(said(&[of(Kind::Growth, Confidence::Medium, None, 1)], Sight::Whole), "");
        // A finding of low confidence does not count as growth, and is not denied either.
        assert_eq!(
            said(&[of(Kind::Growth, Confidence::Low, None, 1)], Sight::Whole),
            "No growth is certain."
        );
        assert!(said(&[], Sight::Nothing).starts_with("No allocation was recorded"));
        let unseen = NoGrowth::InBlocks { unseen: "50.0 MiB of 60.0 MiB are in none".to_owned() };
        assert_eq!(
            verdict(&[], Sight::Whole, unseen, || Some("f holds 9.".to_owned())),
            "What was recorded in blocks does not grow; whether the rest does is not known: 50.0 MiB of 60.0 MiB are in \
             none."
        );
        let sampled = || NoGrowth::Sampled { up_to: "10.0 MiB".to_owned(), unseen: None };
        let few = "No growth is seen; the samples leave room for up to 10.0 MiB of it.";
        assert_eq!(
            verdict(&[of(Kind::Peak, Confidence::High, None, 1)], Sight::Whole, sampled(), || None),
            few
        );
        assert_eq!(
            verdict(&[], Sight::Whole, sampled(), || Some("f holds 9.".to_owned())),
            format!("{few} Nothing stands out. f holds 9.")
        );
        let both = NoGrowth::Sampled {
            up_to: "10.0 MiB".to_owned(),
            unseen: Some("9 of 10 are in none".to_owned()),
        };
        assert_eq!(
            verdict(&[], Sight::Whole, both, || None),
            format!("{few} Whether memory outside of blocks grows is not known: 9 of 10 are in none.")
        );
        let of_one = |findings: &[Finding]| verdict(findings, Sight::Whole, NoGrowth::OneMoment, || None);
        assert_eq!(of_one(&[]), "Nothing stands out.");
        assert_eq!(of_one(&[of(Kind::Peak, Confidence::High, None, 1)]), "");
        let unknown = NoGrowth::Unknown { moment_count: 2 };
        assert_eq!(
            verdict(&[], Sight::Whole, unknown, || Some("f holds 9.".to_owned())),
            "Whether memory grows is not known: the file tells 2 moments. Nothing stands out. f holds 9."
        );
    }
}
