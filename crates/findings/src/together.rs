//! Findings about a function with all its callees, for cases in which no single function has much,
//! or none grows steadily.

use std::cell::OnceCell;
use std::cmp::Reverse;

use heapr_query::{Confidence, Owner};
use heapr_table::quantity::percent;
use heapr_trace::{Amounts, ProcessIndex};

use crate::calls::{Calls, Part};
use crate::finding::{Finding, OwnFrame};
use crate::growth::{self, Growing};
use crate::recording::Recording;
use crate::site::{Held, Site};
use crate::sites::NO_SITE;
use crate::work_time::{GROWTH_MIN_BYTES, WorkTime};

/// Smallest share of the peak that the named part must have, with all that it calls.
const PEAK_SHARE: f64 = 0.5;
/// Smallest growth of a part, as a share of the live bytes at the end of work.
const GROWTH_SHARE: f64 = 0.2;
/// Smallest share of a part for functions that are named beside it.
const NAMED_SHARE: f64 = 0.1;

/// Function that has most of an amount, with all its callees.
#[derive(Debug, Clone)]
pub(crate) struct Together {
    pub(crate) own_frame: OwnFrame,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Callees with the largest shares of it.
    shares: Vec<(String, i64)>,
}

impl Together {
    /// Formats the shares of `whole` bytes: `, most in f (40 %) and g (38 %)`.
    pub(crate) fn shares_text(&self, whole: u64) -> String {
        let shares = self.shares.iter().map(|(name, amount)| {
            format!("{name} ({})", percent(u64::try_from(*amount).unwrap_or(0), whole))
        });
        let shares: Vec<String> = shares.collect();
        match shares.split_last() {
            None => String::new(),
            Some((one, [])) => format!(", most in {one}"),
            Some((last, others)) => format!(", most in {} and {last}", others.join(", ")),
        }
    }
}

/// Parts of the calls that hold most of the peak, each found once.
pub(crate) struct AtPeak<'r, 'a> {
    recording: &'r Recording<'a>,
    /// Part of all processes; unset until it is needed.
    of_all: OnceCell<Option<Together>>,
}

impl<'r, 'a> AtPeak<'r, 'a> {
    pub(crate) fn new(recording: &'r Recording<'a>) -> Self {
        Self { recording, of_all: OnceCell::new() }
    }

    /// Part that holds most of the peak of all processes.
    pub(crate) fn of_all(&self) -> Option<Together> {
        self.of_all.get_or_init(|| at_peak(self.recording, None)).clone()
    }

    /// Part that holds most of the peak in one process.
    pub(crate) fn of_process(&self, process: ProcessIndex) -> Option<Together> {
        match self.recording.trace.processes().len() {
            1 => self.of_all(),
            _ => at_peak(self.recording, Some(process)),
        }
    }
}

/// Part of the calls that holds most of the peak, in one process or in all.
fn at_peak(recording: &Recording<'_>, process: Option<ProcessIndex>) -> Option<Together> {
    let is_of_it = |stack| process.is_none_or(|process| recording.process_of(stack) == process);
    let calls = Calls::new(recording, |add| {
        recording.for_each_total(|totals| {
            if is_of_it(totals.stack) {
                add(totals.stack, i64::try_from(totals.amounts.peak_bytes).unwrap_or(i64::MAX));
            }
        });
    });
    let root = calls.root();
    let way = calls.way_down(&root, (root.amount as f64 * PEAK_SHARE) as i64);
    let (own_frame, name, amount) = way.iter().rev().find_map(|part| {
        let (own_frame, name) = calls.name(part)?;
        Some((own_frame, name, part.amount))
    })?;
    let mut shares = calls.shares(way.last()?, (root.amount as f64 * NAMED_SHARE) as i64);
    shares.retain(|(share, _)| *share != name);
    Some(Together { own_frame, name, bytes: u64::try_from(amount).ok()?, shares })
}

/// Finding about the growth of a part of the calls of the largest process, where no single function
/// grows steadily. An example is a program that fills one structure after the other. `alone` has
/// the functions that do grow.
pub(crate) fn growing(recording: &Recording<'_>, alone: &[Growing<'_>]) -> Option<(ProcessIndex, Finding)> {
    let numbers = (0..recording.processes.len() as u32).map(ProcessIndex);
    let work_of = |process: ProcessIndex| &recording.processes[process.0 as usize];
    let process = numbers.max_by_key(|&process| (work_of(process).last_bytes(), Reverse(process)))?;
    let mut alone = alone.iter().filter(|growing| growing.site.process == process);
    if alone.clone().any(|growing| !growing.begins_late) {
        return None;
    }
    // The last of several phases must be the smaller part of the growth.
    let most_alone = alone.by_ref().map(|growing| growing.growth_bytes).max().unwrap_or(0);
    let work = work_of(process);
    let (from, to) = growth::judged_moments(&recording.work_done, work)?;
    let calls = Calls::new(recording, |add| {
        for (place, sign) in [(to, 1), (from, -1)] {
            for row in recording.rows_and_rests(place, process) {
                add(row.stack, i64::try_from(row.live_bytes).unwrap_or(i64::MAX).saturating_mul(sign));
            }
        }
    });
    let least = GROWTH_MIN_BYTES.max((work.last_bytes() as f64 * GROWTH_SHARE) as u64);
    let way = calls.way_down(&calls.root(), i64::try_from(least).ok()?);
    let sites = sites_of(recording, process, &way);
    // The program's own function is told before that of a library that it calls.
    let of_program = |part: &Part| calls.owner(part) == Some(Owner::Program);
    let parts = || way.iter().zip(&sites).rev();
    let ordered =
        parts().filter(|(part, _)| of_program(part)).chain(parts().filter(|(part, _)| !of_program(part)));
    // Below the deepest function of the program there are libraries only: it is told although most
    // is of one of them.
    let deepest = way.iter().rposition(of_program).and_then(|place| way.get(place));
    for (part, site) in ordered {
        let Some((own_frame, name)) = calls.name(part) else { continue };
        let Some(growing) = growth::judge(&recording.times_ns, &recording.work_done, site, work) else {
            continue;
        };
        let shares = calls.shares(part, (part.amount as f64 * NAMED_SHARE) as i64);
        let is_deepest = deepest.is_some_and(|deepest| std::ptr::eq(deepest, part));
        if shares.len() < 2 && !is_deepest || growing.growth_bytes < most_alone.saturating_mul(2) {
            continue;
        }
        let mut finding = growing.finding_of(recording, own_frame, &format!("{name}, with what it calls,"));
        finding.confidence = finding.confidence.min(Confidence::Medium);
        let shares: Vec<String> = shares
            .iter()
            .map(|(name, amount)| format!("{name} +{}", recording.bytes(u64::try_from(*amount).unwrap_or(0))))
            .collect();
        if !shares.is_empty() {
            let text = format!("no function of it grows all the time by itself: {}", shares.join(", "));
            finding.evidence.push(text);
        }
        return Some((process, finding));
    }
    None
}

/// Amounts over time of each part of a path.
fn sites_of(recording: &Recording<'_>, process: ProcessIndex, way: &[Part]) -> Vec<Site> {
    // By stack: depth of its part on the path, from 1.
    let mut levels = vec![0_usize; recording.tree.count()];
    for (level, part) in way.iter().enumerate() {
        for &stack in &part.stacks {
            levels[stack as usize] = level + 1;
        }
    }
    for stack in 1..levels.len() {
        if levels[stack] == 0 {
            levels[stack] = levels[recording.tree.parent(stack as u32) as usize];
        }
    }
    let mut sites: Vec<Site> = Vec::new();
    for part in way {
        sites.push(Site {
            process,
            owner: Owner::Program,
            is_loading: false,
            number: NO_SITE,
            amounts: Amounts::default(),
            stack: heapr_trace::StackIndex::EMPTY,
            weight: u64::try_from(part.amount).unwrap_or(0),
            held: vec![Held::default(); recording.times_ns.len()],
        });
    }
    recording.for_each_total(|totals| {
        let level = levels[recording.near(totals.stack) as usize];
        if level > 0 && recording.process_of(totals.stack) == process {
            sites[level - 1].amounts += &totals.amounts;
        }
    });
    for place in 0..recording.times_ns.len() {
        for row in recording.rows_and_rests(place, process) {
            let level = levels[recording.near(row.stack) as usize];
            if level > 0 {
                sites[level - 1].held[place].add(row);
            }
        }
    }
    // A part includes all deeper parts.
    for level in (1..sites.len()).rev() {
        let (above, below) = sites.split_at_mut(level);
        let (above, below) = (&mut above[level - 1], &below[0]);
        above.amounts += &below.amounts;
        above.held.iter_mut().zip(&below.held).for_each(|(sum, held)| *sum += *held);
    }
    sites
}

/// Live bytes of a whole process over time.
pub(crate) fn curve(recording: &Recording<'_>, work: &WorkTime) -> Vec<(u64, u64)> {
    let times = recording.times_ns.get(work.first..).unwrap_or_default();
    times.iter().copied().zip(work.live_bytes.iter().copied()).collect()
}
