//! Findings from other data of the recording: resident memory that is not live, invalid frees, and
//! lost events.

use heapr_known::allocator_libraries::LANGUAGE_HEAPS;
use heapr_known::machine::SMALLEST_PAGE_BYTES;
use heapr_query::Confidence;
use heapr_table::quantity::{bytes, count, duration, percent, plural};
use heapr_trace::{HeapId, Loss, MemoryAccount, MemoryPart, ProcessIndex, ProcessOrigin};

use crate::allocator_advice::advice;
use crate::finding::{Chosen, Finding, Kind, quoted};
use crate::kept_memory::{Kept, live_about};
use crate::peak::ALONE_SHARE;
use crate::recording::Recording;
use crate::site::Held;
use crate::together::{self, AtPeak};

/// Smallest amount of resident memory without blocks that is reported: in bytes, and as a share of
/// the anonymous resident memory.
const RESIDENT_MIN_BYTES: u64 = 8 << 20;
const RESIDENT_MIN_SHARE: f64 = 0.5;
/// Smallest share of the unexplained memory in the pages that live blocks keep resident, for pages
/// to be named as the cause. Otherwise the allocator caches freed memory, and the peak matters.
const PINNED_MIN_SHARE: f64 = 0.25;
/// Smallest ratio of the blocks' peak to the unexplained memory, for memory that surely was in
/// blocks.
const WAS_IN_BLOCKS: f64 = 0.8;
/// Smallest amount of memory outside malloc that is reported. An interpreter has some ten MB of its
/// own.
const UNSEEN_MIN_BYTES: u64 = 48 << 20;
/// Anonymous resident memory of a program without a heap.
const BARE_BYTES: u64 = 2 << 20;

/// Finding about memory that is resident and not live, in the last sample before the end of work.
pub(crate) fn resident(recording: &Recording<'_>, at_peak: &AtPeak<'_, '_>) -> Option<Finding> {
    let process =
        recording.trace.resident_samples().iter().max_by_key(|sample| sample.anonymous_bytes)?.process;
    let work = recording.processes.get(process.0 as usize)?;
    let until_ns = work.until_ns(&recording.times_ns)?;
    let mut samples = recording.trace.resident_samples().iter().filter(|sample| sample.process == process);
    let sample = samples.rfind(|sample| sample.time_ns <= until_ns)?;
    let (live, end) = live_about(recording, work, sample.time_ns)?;
    let resident = sample.anonymous_bytes.saturating_sub(agent_bytes(recording, process));
    let unexplained = resident.saturating_sub(live).saturating_sub(BARE_BYTES);
    if unexplained < RESIDENT_MIN_BYTES || (unexplained as f64) < resident as f64 * RESIDENT_MIN_SHARE {
        return None;
    }
    // Check that the memory was ever in blocks.
    let peak = work.live_bytes[..end].iter().copied().max().unwrap_or(0);
    let peak = peak.max(peak_of(recording, process, sample.time_ns));
    if (peak as f64) < resident as f64 * 0.5 {
        // The heap of a runtime is told by its name, above the findings or by the recorder.
        if unexplained.saturating_sub(named_heap_bytes(recording, process)) < UNSEEN_MIN_BYTES {
            return None;
        }
        let kept = Kept::never_in_blocks(recording, work, (process, until_ns), peak);
        return Some(unseen(recording, (process, sample.time_ns), resident, peak, kept));
    }
    let survivors = survivors(recording, process, sample.time_ns);
    let page_bytes = recording.trace.system().page_bytes.max(SMALLEST_PAGE_BYTES);
    let is_pinned =
        survivors.count.saturating_mul(page_bytes) as f64 >= unexplained as f64 * PINNED_MIN_SHARE;
    let site = recording.sites.iter().filter(|site| site.process == process).max_by_key(|site| {
        site.amounts.peak_bytes.max(site.held.iter().map(|held| held.bytes).max().unwrap_or(0))
    })?;
    let held = site.amounts.peak_bytes.max(site.held.iter().map(|held| held.bytes).max().unwrap_or(0));
    let is_alone = held as f64 >= peak as f64 * ALONE_SHARE;
    let together = if is_alone { None } else { at_peak.of_process(process) };
    let (own_frame, name) = match &together {
        Some(together) => (together.own_frame.clone(), format!("{}, with what it calls", together.name)),
        None => {
            let (own_frame, name) = recording.name(site);
            let through = recording.through(site.stack);
            (own_frame, through.library.map_or(name.clone(), |library| format!("{name}, through {library}")))
        }
    };
    let held = together.as_ref().map_or(held, |together| together.bytes);
    let part = match held.saturating_mul(2) >= peak {
        true => "most of it".to_owned(),
        false => format!("the largest part, {} of {} at most,", recording.bytes(held), recording.bytes(peak)),
    };
    let shares = together.as_ref().map(|together| together.shares_text(peak)).unwrap_or_default();
    let chosen = Chosen {
        at: Some("peak".to_owned()),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let kept = Kept::freed(recording, work, (process, until_ns));
    let finding = Finding {
        kind: Kind::Resident,
        sentence: format!(
            "Freed memory stays resident: {} are resident after {}, where {} are live; {part} was made by {name}{shares}.",
            bytes(resident),
            duration(sample.time_ns),
            recording.bytes(live),
        ),
        // The memory was in blocks, if the blocks' peak was about as large.
        confidence: match is_pinned || peak as f64 >= unexplained as f64 * WAS_IN_BLOCKS {
            true => Confidence::High,
            false => Confidence::Medium,
        },
        bytes: unexplained,
        bytes_plus_minus: recording.half_of_bytes(live),
        is_left: false,
        evidence: evidence(recording, process, peak, is_pinned, &survivors, kept),
        curve: match together {
            Some(_) => together::curve(recording, work),
            None => recording.curve(site),
        },
        own_frame: Some(own_frame),
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}

/// Finding of memory that was never in blocks. `peak`: bytes of the blocks at most.
fn unseen(
    recording: &Recording<'_>,
    (process, time_ns): (ProcessIndex, u64),
    resident: u64,
    peak: u64,
    kept: Option<Kept>,
) -> Finding {
    let rest = resident.saturating_sub(peak);
    if let Some(kept) = kept.filter(|kept| kept.free_bytes > 0 && kept.free_bytes.saturating_mul(2) >= rest) {
        let mut evidence = vec![format!(
            "{} are resident without a file after {}, and at most {} were live in blocks",
            bytes(resident),
            duration(time_ns),
            recording.bytes(peak)
        )];
        evidence.extend(kept.texts());
        evidence.extend(advice(recording.trace, process).map(str::to_owned));
        return Finding {
            kind: Kind::Resident,
            sentence: format!(
                "Malloc keeps free memory: at least {} of the {} that are resident in the C library's heap are in no \
                 live block.",
                bytes(kept.free_bytes),
                bytes(kept.memory.heap_bytes)
            ),
            confidence: Confidence::Medium,
            bytes: kept.free_bytes,
            evidence,
            command: format!("heapr info {}", quoted(&recording.file)),
            ..Finding::default()
        };
    }
    // A process that has ended cannot be explained any more.
    let known = recording.trace.processes().get(process.0 as usize);
    let command = match known.filter(|process| process.end_ns.is_none()) {
        Some(process) => format!("heapr explain {} --deep", process.pid),
        None => format!("heapr info {}", quoted(&recording.file)),
    };
    Finding {
        kind: Kind::Unseen,
        sentence: format!(
            "{} are resident without a file, and at most {} were live in blocks: {}.",
            bytes(resident),
            recording.bytes(peak),
            match kept {
                Some(kept) => kept.memory.text(),
                None => "the rest was freed and is kept by malloc, or is not malloc's; it was not looked at"
                    .to_owned(),
            }
        ),
        confidence: Confidence::Medium,
        own_frame: None,
        bytes: resident.saturating_sub(peak),
        bytes_plus_minus: recording.half_of_bytes(peak),
        is_left: false,
        evidence: vec![format!(
            "looked at after {}: heaps of language runtimes, mappings of the program's own and stacks are not in \
             the recording",
            duration(time_ns)
        )],
        command,
        ..Finding::default()
    }
}

fn evidence(
    recording: &Recording<'_>,
    process: ProcessIndex,
    peak: u64,
    is_pinned: bool,
    survivors: &Held,
    kept: Option<Kept>,
) -> Vec<String> {
    let survivors = recording.said.blocks(survivors.live().count);
    let mut evidence = vec![
        format!("up to {} were live in blocks before, and are free now", recording.bytes(peak)),
        match is_pinned {
            true => format!(
                "{survivors} made meanwhile live on and keep pages from being given back: one place for what lives \
                 long, or fewer arenas, help"
            ),
            false => format!("{survivors} made meanwhile live on: too few to keep most of the pages"),
        },
    ];
    evidence.extend(advice(recording.trace, process).map(str::to_owned));
    evidence.extend(kept.iter().flat_map(Kept::texts));
    evidence
}

/// Memory of heapr's agent in a process, which is not the program's.
fn agent_bytes(recording: &Recording<'_>, process: ProcessIndex) -> u64 {
    let accounts = recording.trace.memory_accounts().iter().filter(|account| account.process == process);
    accounts.map(|account| account.agent_bytes).max().unwrap_or(0)
}

/// Memory of a process in heaps of runtimes and allocators that have a name and no recorded blocks.
fn named_heap_bytes(recording: &Recording<'_>, process: ProcessIndex) -> u64 {
    let accounts = recording.trace.memory_accounts().iter().filter(|account| account.process == process);
    let is_named = |part: &&MemoryPart| part.is_unseen && !part.kind.owners().is_empty();
    let named = |account: &MemoryAccount| {
        account.parts.iter().filter(is_named).fold(0_u64, |sum, part| sum.saturating_add(part.bytes))
    };
    accounts.map(named).max().unwrap_or(0)
}

/// Blocks that were made on the way to a process's peak, or since, and are live at `at_ns`.
fn survivors(recording: &Recording<'_>, process: ProcessIndex, at_ns: u64) -> Held {
    let Some(work) = recording.processes.get(process.0 as usize) else { return Held::default() };
    let place_at = |time_ns: u64| {
        let place = recording.times_ns.partition_point(|&moment_ns| moment_ns <= time_ns);
        place.saturating_sub(work.first + 1).min(work.live_bytes.len().saturating_sub(1))
    };
    let at = place_at(at_ns);
    let Some(lives) = work.live_bytes.get(..=at) else { return Held::default() };
    let most = (0..=at).max_by_key(|&place| lives[place]).unwrap_or(0);
    let (mut peak_bytes, mut peak) = (lives[most], most);
    for (owner, heap, totals) in &recording.summary.by_heap {
        let is_before = totals.peak_time_ns <= at_ns && totals.peak_bytes > peak_bytes;
        if *owner == process && *heap != HeapId::MMAP && is_before {
            (peak_bytes, peak) = (totals.peak_bytes, place_at(totals.peak_time_ns));
        }
    }
    // Blocks that were live before the rise may be freed with it: the rise begins where they are
    // few.
    let is_base = |&place: &usize| lives[place].saturating_mul(8) <= peak_bytes;
    let before = (0..=peak).rev().find(is_base).or_else(|| (0..=peak).min_by_key(|&place| lives[place]));
    let live_at = |place: usize| {
        let sites = recording.sites.iter().filter(|site| site.process == process);
        let mut all = Held::default();
        sites.for_each(|site| all += site.held[work.first + place]);
        all
    };
    let (now, before) = (live_at(at), before.map_or_else(Held::default, live_at));
    let mut variances = now.variances;
    variances.remove(before.variances);
    Held {
        bytes: now.bytes.saturating_sub(before.bytes),
        count: now.count.saturating_sub(before.count),
        variances,
        ..Held::default()
    }
}

/// Exact peak of a process, if it was before `until_ns`.
fn peak_of(recording: &Recording<'_>, process: ProcessIndex, until_ns: u64) -> u64 {
    let of_it = recording.summary.by_heap.iter().filter(|(owner, heap, totals)| {
        *owner == process && *heap != HeapId::MMAP && totals.peak_time_ns <= until_ns
    });
    of_it.map(|(_, _, totals)| totals.peak_bytes).max().unwrap_or(0)
}

/// Whether memory pools were recorded. Blocks that a pool takes from malloc are not counted, and
/// may be freed on paths that are not recorded.
fn has_pools(recording: &Recording<'_>) -> bool {
    recording
        .trace
        .heap_names()
        .iter()
        .any(|name| name.heap > HeapId::RUNTIME && !LANGUAGE_HEAPS.contains(&name.name.as_str()))
}

/// Finding about frees of addresses that are not allocated.
pub(crate) fn frees(recording: &Recording<'_>) -> Option<Finding> {
    let totals = recording.summary.totals;
    // If the recording began later or has gaps, blocks exist whose allocation was not recorded.
    let is_whole = recording.trace.whole_loss().missing_events() == 0
        && recording.trace.processes().iter().all(|process| matches!(process.origin, ProcessOrigin::Exec))
        && !recording.trace.session().command_line.is_empty();
    if !is_whole || totals.unmatched_frees == 0 || has_pools(recording) {
        return None;
    }
    Some(Finding {
        kind: Kind::Frees,
        sentence: format!(
            "{} free what is not allocated: freed twice, or not made by malloc.",
            plural(totals.unmatched_frees, "call")
        ),
        confidence: Confidence::Medium,
        own_frame: None,
        bytes: 0,
        is_left: false,
        evidence: vec![format!(
            "{} of {} frees; who frees is told where frees carry stacks (--stack-events alloc,realloc,free)",
            count(totals.unmatched_frees),
            count(totals.alloc_count.saturating_sub(totals.outstanding_count) + totals.unmatched_frees)
        )],
        command: format!("heapr report {} --free-stacks", quoted(&recording.file)),
        ..Finding::default()
    })
}

fn loss_evidence(loss: &Loss) -> Vec<String> {
    let full = "buffers were full: --on-full block waits, --max-buffers gives more room";
    let invalid = format!("{} made no sense", plural(loss.records_invalid, "record"));
    let said = [(loss.events_lost, full.to_owned()), (loss.records_invalid, invalid)];
    said.into_iter().filter(|&(number, _)| number > 0).map(|(_, text)| text).collect()
}

/// Finding about lost events.
pub(crate) fn loss(recording: &Recording<'_>) -> Option<Finding> {
    let loss = recording.trace.whole_loss();
    let lost = loss.missing_events();
    let all = recording.trace.event_count().saturating_add(lost);
    (lost > 0).then(|| Finding {
        kind: Kind::Unseen,
        sentence: format!(
            "{} were lost, {} of all: the numbers are too small.",
            plural(lost, "event"),
            percent(lost, all)
        ),
        confidence: Confidence::High,
        own_frame: None,
        bytes: 0,
        is_left: false,
        evidence: loss_evidence(&loss),
        command: format!("heapr info {}", quoted(&recording.file)),
        ..Finding::default()
    })
}
