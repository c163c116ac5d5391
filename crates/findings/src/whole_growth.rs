//! Growth of all live memory, for files with stacks at few of their moments, such as massif's
//! snapshots.

use heapr_query::Trend;
use heapr_table::quantity::percent;
use heapr_trace::{Amounts, ProcessIndex, StackIndex};

use crate::finding::{Chosen, Finding, Kind};
use crate::growth;
use crate::recording::Recording;
use crate::site::{Held, Site};
use crate::sites::NO_SITE;
use crate::work_time::WorkTime;

/// Finding about growth of the process's whole memory. `None` if all moments have stacks, as other
/// findings then know more, or if there are several processes.
pub(crate) fn whole_growth(recording: &Recording<'_>) -> Option<Finding> {
    let course = &recording.whole_course;
    if course.is_told || recording.trace.processes().len() != 1 {
        return None;
    }
    let held = course.live_bytes.iter().map(|&bytes| Held { bytes, ..Held::default() });
    let outstanding_bytes = recording.summary.totals.outstanding_bytes;
    let all = Site {
        process: ProcessIndex(0),
        owner: heapr_query::Owner::Program,
        is_loading: false,
        number: NO_SITE,
        amounts: Amounts { outstanding_bytes, ..Amounts::default() },
        stack: StackIndex::EMPTY,
        weight: 0,
        held: held.collect(),
    };
    // The source records no numbers of blocks, so that time replaces work.
    let times_ns = &course.times_ns[..];
    let sites = std::slice::from_ref(&all);
    let work = WorkTime::of((recording.trace, times_ns, times_ns, sites), ProcessIndex(0));
    let growing = growth::judge(times_ns, times_ns, &all, &work)?;
    let (from, to) = growing.moments();
    let span = (all.held[from], all.held[to], times_ns[from], times_ns[to]);
    let more = recording.rate(growing.growth_bytes, 0, span.2, span.3);
    let (name, who) = who(recording, growing.growth_bytes);
    let sentence = format!(
        "Memory grows: {} are live {}, {more}; {who}.",
        recording.said.bytes(span.1.bytes),
        recording.after(span.3),
    );
    let mut evidence = vec![format!(
        "{} {}, {} {}: it rises in {} of the steps between {} moments",
        recording.said.bytes(span.0.bytes),
        recording.when(span.2),
        recording.said.bytes(span.1.bytes),
        recording.when(span.3),
        rising(growing.trend()),
        to - from + 1,
    )];
    evidence.push(match course.told {
        0 => "whose it is is told at no moment".to_owned(),
        told => format!("whose it is is told at {told} of {} moments", course.count()),
    });
    let own_frame = name.map(|site| recording.name(site).0);
    let require_frames = own_frame.as_ref().map(|frame| recording.required(frame)).unwrap_or_default();
    let finding = Finding {
        kind: Kind::Growth,
        sentence,
        confidence: growing.confidence(&work),
        own_frame,
        bytes: span.1.bytes,
        evidence,
        curve: times_ns.iter().copied().zip(course.live_bytes.iter().copied()).collect(),
        ..Finding::default()
    };
    Some(finding.choosing(Chosen { require_frames, ..Chosen::default() }, &recording.file))
}

fn rising(trend: &Trend) -> String {
    format!("{:.0} %", trend.rising_share * 100.0)
}

/// Site with the most growth between the first and the last moment with stacks, and a text about
/// it.
fn who<'r>(recording: &'r Recording<'_>, growth_bytes: u64) -> (Option<&'r Site>, String) {
    let came = |site: &Site| {
        let (first, last) = (site.held.first()?, site.held.last()?);
        last.bytes.checked_sub(first.bytes).filter(|&more| more > 0)
    };
    let telling = recording.sites.iter().filter(|site| recording.is_telling(site));
    let most = telling.filter_map(|site| Some((came(site)?, site))).max_by_key(|(more, _)| *more);
    match (most, &recording.times_ns[..]) {
        (Some((more, site)), &[first_ns, .., last_ns]) if more.saturating_mul(4) >= growth_bytes => {
            let name = recording.name(site).1;
            let part = percent(more.min(growth_bytes), growth_bytes);
            let [from, to] = [first_ns, last_ns].map(|time_ns| recording.when(time_ns));
            let text = format!(
                "{name} holds {} more {to} than {from}, as much as {part} of that",
                recording.said.bytes(more)
            );
            (Some(site), text)
        }
        _ => (None, "which function makes it grow is not told".to_owned()),
    }
}
