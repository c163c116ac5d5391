//! Growth over many functions, none of which grows much by itself.

use std::collections::HashSet;

use heapr_query::{Confidence, Owner};
use heapr_table::quantity::{count, percent};
use heapr_trace::{Amounts, CourseRest, CourseRow, ProcessIndex, StackIndex};

use crate::calls::Calls;
use crate::finding::{Chosen, Finding, Kind, OwnFrame};
use crate::growth::{self, Growing};
use crate::recording::Recording;
use crate::site::{Held, RestOwner, Site};
use crate::sites::NO_SITE;

/// Smallest share of the growth that a caller must have, with what it calls, to be named.
const TOGETHER_SHARE: f64 = 0.5;
/// Smallest share of the growth for functions that are named with it.
const NAMED_SHARE: f64 = 0.1;

/// Finding about the growth of all memory of the program and its libraries, in the process that has
/// most of it. `alone`: functions that grow by themselves; `None` if they have half of the growth.
pub(crate) fn all_growth(recording: &Recording<'_>, alone: &[Growing<'_>]) -> Option<Finding> {
    let numbers = (0..recording.processes.len() as u32).map(ProcessIndex);
    let work_of = |process: ProcessIndex| &recording.processes[process.0 as usize];
    let process =
        numbers.max_by_key(|&process| (work_of(process).last_bytes(), std::cmp::Reverse(process)))?;
    let work = work_of(process);
    let all = all_of(recording, process);
    let growing = growth::judge(&recording.times_ns, &recording.work_done, &all, work)?;
    let (from, to) = growing.moments();
    let of_it = alone.iter().filter(|alone| alone.site.process == process);
    let told = of_it.map(|alone| alone.growth_bytes).fold(0, u64::saturating_add);
    if told.saturating_mul(2) >= growing.growth_bytes {
        return None;
    }
    let mut more: Vec<(u64, &Site)> = recording
        .sites
        .iter()
        .filter(|site| site.process == process && recording.is_telling(site))
        .filter_map(|site| Some((site.held[to].bytes.checked_sub(site.held[from].bytes)?, site)))
        .filter(|&(more, _)| more > 0)
        .collect();
    more.sort_by_key(|&(more, site)| std::cmp::Reverse((more, std::cmp::Reverse(site.number))));
    let of_several = [to, from]
        .map(|place| recording.of_several(process, place).bytes)
        .into_iter()
        .reduce(u64::saturating_sub);
    let of_several = of_several.unwrap_or(0);
    // Sites that shrink are in the growth of all, but in no share of it.
    let growth_bytes = more.iter().fold(of_several, |sum, (more, _)| sum.saturating_add(*more));
    let largest =
        more.iter().take_while(|(more, _)| *more as f64 >= growth_bytes as f64 * NAMED_SHARE).take(3);
    let largest: Vec<String> = largest
        .map(|(more, site)| format!("{} ({})", recording.name(site).1, percent(*more, growth_bytes)))
        .collect();
    let is_small = |bytes: u64| (bytes as f64) < growth_bytes as f64 * NAMED_SHARE;
    let who = match largest.is_empty() {
        // Small stacks may be one function's, where it is called in many ways.
        true if !is_small(of_several) => "none is known to have 10 % of it".to_owned(),
        true => "none has 10 % of it".to_owned(),
        false => format!("most in {}", largest.join(", ")),
    };
    let functions = match is_small(of_several) {
        true => count(more.len() as u64),
        false => count(holding(recording, process)),
    };
    let caller = caller(recording, process, (from, to));
    let under = caller.as_ref().map_or(String::new(), |(_, name, share)| {
        format!(
            "; {} of it under {name}, with what it calls",
            percent((*share).min(growth_bytes), growth_bytes)
        )
    });
    let sentence = format!(
        "Memory grows all together: {} are live {}, {}, over {functions} functions; {who}{under}.",
        recording.said.held(all.held[to].live()),
        recording.after(recording.times_ns[to]),
        growing.pace(recording),
    );
    Some(finding(recording, &growing, sentence, caller.map(|(own_frame, ..)| own_frame)))
}

/// Number of functions of a process that hold memory at the peak or at the end.
fn holding(recording: &Recording<'_>, process: ProcessIndex) -> u64 {
    let sites = recording.sites.iter().filter(|site| site.process == process && recording.is_telling(site));
    sites.filter(|site| site.amounts.peak_bytes > 0 || site.amounts.outstanding_bytes > 0).count() as u64
}

fn finding(
    recording: &Recording<'_>,
    growing: &Growing<'_>,
    sentence: String,
    own_frame: Option<OwnFrame>,
) -> Finding {
    let work = &recording.processes[growing.site.process.0 as usize];
    let (_, to) = growing.moments();
    let chosen = Chosen {
        at: Some(format!("{}ns", recording.times_ns[to])),
        require_frames: own_frame.as_ref().map(|frame| recording.required(frame)).unwrap_or_default(),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Growth,
        sentence,
        confidence: growing.confidence(work).min(Confidence::Medium),
        own_frame,
        bytes: growing.site.held[to].bytes,
        evidence: growing.evidence(recording),
        curve: recording.curve(growing.site),
        ..Finding::default()
    };
    finding.choosing(chosen, &recording.file)
}

/// Amounts of all sites of a process that may be named, and of the stacks below them that are too
/// small to be told.
fn all_of(recording: &Recording<'_>, process: ProcessIndex) -> Site {
    let mut all = Site {
        process,
        owner: Owner::Program,
        is_loading: false,
        number: NO_SITE,
        amounts: Amounts::default(),
        stack: StackIndex::EMPTY,
        weight: 0,
        held: vec![Held::default(); recording.times_ns.len()],
    };
    let sites = recording.sites.iter().filter(|site| site.process == process && recording.is_telling(site));
    for site in sites {
        all.held.iter_mut().zip(&site.held).for_each(|(sum, held)| *sum += *held);
    }
    for (place, sum) in all.held.iter_mut().enumerate() {
        *sum += recording.of_several(process, place);
    }
    all
}

/// Deepest named function under which most of the growth between two moments lies, and its part.
/// Stacks of sites that may not be named are left out.
fn caller(
    recording: &Recording<'_>,
    process: ProcessIndex,
    (from, to): (usize, usize),
) -> Option<(OwnFrame, String, u64)> {
    let sites = recording.sites.iter().filter(|site| site.process == process && recording.is_telling(site));
    let numbers: HashSet<u32> = sites.map(|site| site.number).collect();
    let is_of_them = |row: &CourseRow| {
        recording.site_of.get(row.stack.0 as usize).is_some_and(|number| numbers.contains(number))
    };
    let is_told = |rest: &&CourseRest| match recording.rest_owners.get(&rest.row.stack) {
        Some(RestOwner::Site(number)) => numbers.contains(number),
        Some(RestOwner::Several(owner)) => rest.process == process && *owner != Owner::Runtime,
        None => false,
    };
    let calls = Calls::new(recording, |add| {
        for (place, sign) in [(to, 1), (from, -1)] {
            for (_, row) in recording.rows(place).filter(|(_, row)| is_of_them(row)) {
                add(row.stack, i64::try_from(row.live_bytes).unwrap_or(i64::MAX).saturating_mul(sign));
            }
            for CourseRest { row, .. } in recording.rests(place).filter(is_told) {
                add(row.stack, i64::try_from(row.live_bytes).unwrap_or(i64::MAX).saturating_mul(sign));
            }
        }
    });
    let root = calls.root();
    let way = calls.way_down(&root, (root.amount as f64 * TOGETHER_SHARE) as i64);
    let of_program = |part: &&crate::calls::Part| calls.owner(part) == Some(Owner::Program);
    let parts = || way.iter().rev();
    parts().filter(of_program).chain(parts()).find_map(|part| {
        let (own_frame, name) = calls.name(part)?;
        Some((own_frame, name, u64::try_from(part.amount).ok()?))
    })
}
