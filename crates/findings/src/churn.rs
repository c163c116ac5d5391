//! Memory that is freed soon after allocation, or resized step by step, again and again.

use heapr_query::Confidence;
use heapr_table::quantity::{bytes, count, duration, percent, plural};
use heapr_trace::{BlockEstimate, Estimate};

use crate::finding::{Chosen, Finding, Kind};
use crate::recording::Recording;
use crate::site::{Held, Site};

/// Smallest number of temporary allocations, of reallocations or of a function's allocations that
/// is reported.
const COUNT_MIN: u64 = 50_000;
/// Smallest share of all allocations that must be temporary, or reallocations, and smallest share
/// of those that one function must make.
const SHARE_MIN: f64 = 0.4;
const SITE_SHARE_MIN: f64 = 0.25;
/// Blocks that live longer are churn if one function makes at least this share of all blocks. The
/// bytes that it allocates must also be at least this multiple of its largest live size.
const TURNOVER_SHARE_MIN: f64 = 0.25;
const TURNOVER_MIN: u64 = 50;

/// Smallest share of the recording's time in which so many blocks were made, and smallest number of
/// them in a second. Below these they matter little, whatever their share of all allocations: of
/// some 50 ns each, 100,000 take half a percent of a second.
const SPAN_MIN: f64 = 0.1;
const PER_SECOND_MIN: f64 = 100_000.0;
/// Smallest number of bytes in a second that take time by themselves, to be zeroed or copied. At
/// some 4 GB a second, 256 MiB take a sixteenth.
const BYTES_PER_SECOND_MIN: f64 = (256 << 20) as f64;

/// Findings about temporary blocks and about reallocations, or else one about turnover.
pub(crate) fn churn(recording: &Recording<'_>) -> Vec<Finding> {
    let totals = recording.summary.totals;
    let is_much = |part: u64| part >= COUNT_MIN && part as f64 >= totals.alloc_count as f64 * SHARE_MIN;
    let most = |amount: fn(&Site) -> u64, all: u64| {
        let site = recording.sites.iter().max_by_key(|site| amount(site))?;
        (amount(site) as f64 >= all as f64 * SITE_SHARE_MIN).then_some(site)
    };
    let mut found = Vec::new();
    if is_much(totals.temporary_count)
        && let Some(site) = most(|site| site.amounts.temporary_count, totals.temporary_count)
    {
        found.push(weighed(recording, (site, site.amounts.temporary_count), temporary(recording, site)));
    }
    if is_much(totals.realloc_count)
        && let Some(site) = most(|site| site.amounts.realloc_count, totals.realloc_count)
    {
        found.push(weighed(recording, (site, site.amounts.realloc_count), resized(recording, site)));
    }
    if found.is_empty()
        && let Some(site) = recording.sites.iter().max_by_key(|site| site.amounts.total_count)
        && recording.is_telling(site)
        && is_turned_over(site, totals.alloc_count)
    {
        found.push(turnover(recording, site));
    }
    found
}

/// Lowers the confidence of a finding whose allocations take little of the time: a burst, or few
/// and small ones in a second. `part`: their number in the site.
fn weighed(recording: &Recording<'_>, (site, part): (&Site, u64), finding: Finding) -> Finding {
    let whole_ns = recording.trace.duration_ns();
    if recording.trace.sampling().untold().times || whole_ns == 0 {
        return finding;
    }
    let per_second = part as f64 / whole_ns as f64 * 1e9;
    let amounts = &site.amounts;
    let bytes_per_second = per_second * amounts.total_bytes as f64 / amounts.total_count.max(1) as f64;
    let moments = &recording.summary.course.moments;
    let span_ns = shortest_span(moments.iter().map(|moment| (moment.time_ns, moment.total_count)), part);
    let little = match span_ns {
        Some(span_ns) if (span_ns as f64) < whole_ns as f64 * SPAN_MIN => format!(
            "all allocations of {} of the {} are as many: it may be no more than a burst",
            duration(span_ns),
            duration(whole_ns)
        ),
        _ if per_second < PER_SECOND_MIN && bytes_per_second < BYTES_PER_SECOND_MIN => {
            format!(
                "{} a second: that likely takes little of the time",
                plural(per_second as u64, "such allocation")
            )
        }
        _ => return finding,
    };
    let evidence = finding.evidence.into_iter().chain([little]).collect();
    Finding { confidence: Confidence::Low, evidence, ..finding }
}

/// Shortest time between two moments in which at least so many blocks were made. The beginning is a
/// moment, too. `None`: too few were made until the last one.
fn shortest_span(moments: impl Iterator<Item = (u64, u64)>, part: u64) -> Option<u64> {
    let moments: Vec<(u64, u64)> = std::iter::once((0, 0)).chain(moments).collect();
    let mut begin = 0;
    let mut shortest_ns = None::<u64>;
    for &(time_ns, made) in &moments {
        while moments.get(begin + 1).is_some_and(|(_, begun)| made.saturating_sub(*begun) >= part) {
            begin += 1;
        }
        let (begin_ns, begun) = moments[begin];
        if made.saturating_sub(begun) >= part {
            let span_ns = time_ns.saturating_sub(begin_ns);
            shortest_ns = Some(shortest_ns.map_or(span_ns, |known| known.min(span_ns)));
        }
    }
    shortest_ns
}

/// Largest amount that a site held.
fn most_held(site: &Site) -> BlockEstimate {
    let moments = site.held.iter().map(Held::live).chain([site.amounts.at_peak()]);
    moments.max_by_key(|held| (held.bytes.value, held.count.value)).unwrap_or_default()
}

fn is_turned_over(site: &Site, all_count: u64) -> bool {
    let (amounts, held) = (&site.amounts, most_held(site));
    // Few samples leave room for growth: that little is held at most is then no fact.
    let half = held.bytes_plus_minus();
    let is_seen = held.bytes.value > 0 || amounts.allocated().bytes_plus_minus() == 0;
    let is_known = is_seen && half.saturating_mul(2) <= held.bytes.value;
    is_known
        && amounts.total_count >= COUNT_MIN
        && amounts.total_count as f64 >= all_count as f64 * TURNOVER_SHARE_MIN
        && amounts.total_bytes >= held.bytes.value.saturating_mul(TURNOVER_MIN)
}

fn turnover(recording: &Recording<'_>, site: &Site) -> Finding {
    let totals = recording.summary.totals;
    let (own_frame, name) = recording.name(site);
    let chosen = Chosen { sort: "stc", require_frames: recording.required(&own_frame), ..Chosen::default() };
    let finding = Finding {
        kind: Kind::Churn,
        sentence: format!(
            "Churn: {name} makes {}, {} of all, and holds {} at most.",
            recording.said.blocks(site.amounts.allocated().count),
            percent(site.amounts.total_count, totals.alloc_count),
            recording.said.bytes_of(most_held(site)),
        ),
        // A busy server makes many blocks, too.
        confidence: Confidence::Low,
        evidence: vec![format!(
            "{} in all, {} each on average",
            recording.said.bytes_of(site.amounts.allocated()),
            bytes(site.amounts.total_bytes / site.amounts.total_count.max(1)),
        )],
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: site.amounts.total_bytes,
        bytes_plus_minus: site.amounts.allocated().bytes_plus_minus(),
        ..Finding::default()
    };
    finding.choosing(chosen, &recording.file)
}

fn temporary(recording: &Recording<'_>, site: &Site) -> Finding {
    let totals = recording.summary.totals;
    let (own_frame, name) = recording.name(site);
    let mean = site.amounts.total_bytes / site.amounts.total_count.max(1);
    let chosen = Chosen {
        temporary: true,
        sort: "stc",
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Churn,
        sentence: format!(
            "Churn: {name} makes {}, and {} of them are freed before their thread allocates again: {} of all \
             allocations.",
            recording.said.blocks(site.amounts.allocated().count),
            percent(site.amounts.temporary_count, site.amounts.total_count),
            percent(site.amounts.temporary_count, totals.alloc_count),
        ),
        confidence: sure(site.amounts.temporary_count, totals.alloc_count),
        evidence: vec![format!(
            "{} in all, {} each on average, where {} are live at most",
            recording.said.bytes_of(site.amounts.allocated()),
            bytes(mean),
            recording.said.bytes_of(recording.peak())
        )],
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: site.amounts.total_bytes,
        bytes_plus_minus: site.amounts.allocated().bytes_plus_minus(),
        is_left: false,
        ..Finding::default()
    };
    finding.choosing(chosen, &recording.file)
}

fn resized(recording: &Recording<'_>, site: &Site) -> Finding {
    let totals = recording.summary.totals;
    let (own_frame, name) = recording.name(site);
    let amounts = site.amounts;
    let blocks = amounts.total_count.saturating_sub(amounts.realloc_count);
    let reallocated = Estimate::new(amounts.realloc_count, amounts.variances.realloc_count);
    let all = amounts.allocated().count;
    let each = match blocks {
        0 => String::new(),
        blocks => {
            let each = count(amounts.realloc_count / blocks);
            format!(", {each} for each of its {} blocks", recording.said.count(all.without(reallocated)))
        }
    };
    let chosen = Chosen {
        temporary: false,
        sort: "src",
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Churn,
        sentence: format!(
            "Churn: {name} grows blocks step by step: {} reallocations{each}, {} of all allocations.",
            recording.said.count(reallocated),
            percent(amounts.realloc_count, totals.alloc_count),
        ),
        confidence: sure(amounts.realloc_count, totals.alloc_count),
        evidence: vec![format!(
            "{} were asked for in all, where {} are live at most: room made at once, or by doubling, saves the rest",
            recording.said.bytes_of(amounts.allocated()),
            recording.said.bytes_of(recording.peak())
        )],
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: amounts.total_bytes,
        bytes_plus_minus: amounts.allocated().bytes_plus_minus(),
        is_left: false,
        ..Finding::default()
    };
    finding.choosing(chosen, &recording.file)
}

fn sure(part: u64, whole: u64) -> Confidence {
    if part as f64 >= whole as f64 * 0.5 { Confidence::High } else { Confidence::Medium }
}

#[test]
fn blocks_are_told_to_be_turned_over_only_where_what_is_held_is_known() {
    let mut site = crate::made::site(&[1000, 1000]);
    (site.amounts.total_count, site.amounts.total_bytes) = (100_000, 100 << 20);
    assert!(is_turned_over(&site, 100_000));
    assert!(!is_turned_over(&site, 500_000), "a fifth of all");
    for held in &mut site.held {
        // A sample stands for 500 KiB: 1000 KiB are two of them.
        held.variances.bytes_kib2 = 1000 * 500;
    }
    assert!(!is_turned_over(&site, 100_000));
    // No sample was live at a moment.
    for held in &mut site.held {
        *held = Held::default();
    }
    assert!(is_turned_over(&site, 100_000), "counted");
    site.amounts.variances.total_bytes = (100 << 10) * 500;
    assert!(!is_turned_over(&site, 100_000), "estimated");
}

#[test]
fn the_shortest_time_of_as_many_blocks_tells_a_burst() {
    let even = || (1..=40).map(|at: u64| (at * 100, at * 1000));
    assert_eq!(shortest_span(even(), 20_000), Some(2000));
    assert_eq!(shortest_span(even(), 50_000), None, "fewer were made");
    let burst = || (1..=40).map(|at: u64| (at * 100, at * 100 + if at > 3 { 20_000 } else { 0 }));
    assert_eq!(shortest_span(burst(), 20_000), Some(100));
    assert_eq!(shortest_span(std::iter::once((100, 20_000)), 20_000), Some(100), "before the first moment");
}
