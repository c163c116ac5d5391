//! Pages of a process at moments of a recording: from its events, which are replayed once, or from
//! its snapshots.

use std::collections::HashMap;

use heapr_explore::LastingBlock;
use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, StackIndex};

use crate::error::{Error, Result};
use crate::native::{LivePages, Page, pages_of, place_label};
use crate::trace_file::TraceFile;

/// Largest number of moments.
const MOMENTS: u64 = 48;
/// Largest distance of moments, as a multiple of the least one. It divides [`MOMENTS`], so that the
/// end of the recording is always a moment.
const STEP_MAX: u64 = 16;
/// Largest number of blocks of snapshots that are looked at, and of pages that are kept. A larger
/// heap has fewer moments.
const BLOCKS_MAX: u64 = 64_000_000;
const PAGES_MAX: usize = 1_000_000;

/// Live blocks of a process and their pages.
struct Live {
    /// Size and stack of each block. Heaps that the program made may lie in blocks of malloc.
    blocks: hashbrown::HashMap<(HeapId, u64), (u64, StackIndex)>,
    pages: LivePages,
}

impl Live {
    fn add(&mut self, at: (HeapId, u64), size_bytes: u64, stack: StackIndex) {
        self.remove(at);
        self.blocks.insert(at, (size_bytes, stack));
        if size_bytes > 0 {
            self.pages.add(at.1, size_bytes, stack.0 as usize);
        }
    }

    fn remove(&mut self, at: (HeapId, u64)) {
        if let Some((size_bytes, stack)) = self.blocks.remove(&at).filter(|&(size_bytes, _)| size_bytes > 0) {
            self.pages.remove(at.1, size_bytes, stack.0 as usize);
        }
    }

    /// Changes the live blocks by an event.
    fn apply(&mut self, event: &Event) {
        let heap = event.heap;
        match event.action {
            Action::Alloc { address_avma, size_bytes, stack, .. } => {
                self.add((heap, address_avma), size_bytes, stack);
            }
            Action::Free { address_avma, .. } => self.remove((heap, address_avma)),
            Action::Realloc { old_address_avma, address_avma, size_bytes, stack, .. } => {
                self.remove((heap, old_address_avma));
                self.add((heap, address_avma), size_bytes, stack);
            }
            _ => {}
        }
    }
}

/// Whether the work should stop.
pub(super) type IsCancelled<'a> = &'a (dyn Fn() -> bool + Sync);

/// Pages of one moment, with numbers of functions.
pub(super) struct Taken {
    pub(super) time_ns: u64,
    /// Number of the snapshot, of a recording without events.
    pub(super) snapshot: Option<u32>,
    pub(super) pages: Vec<Page>,
}

/// Functions by name and by stack.
#[derive(Default)]
pub(super) struct Owners {
    pub(super) names: Vec<String>,
    by_name: HashMap<String, usize>,
    of_stack: HashMap<StackIndex, usize>,
}

impl Owners {
    fn of(&mut self, file: &TraceFile, stack: StackIndex) -> usize {
        if let Some(&known) = self.of_stack.get(&stack) {
            return known;
        }
        let label = place_label(file, stack);
        let next = self.names.len();
        let owner = *self.by_name.entry(label.clone()).or_insert(next);
        if owner == next {
            self.names.push(label);
        }
        self.of_stack.insert(stack, owner);
        owner
    }
}

fn check(is_cancelled: IsCancelled<'_>) -> Result<()> {
    if is_cancelled() { Err(Error::GivenUp) } else { Ok(()) }
}

/// Pages at snapshots. Of many of them some are taken evenly, with the last one.
pub(super) fn of_snapshots(
    file: &TraceFile,
    process: Option<ProcessIndex>,
    page_bytes: u64,
    owners: &mut Owners,
    is_cancelled: IsCancelled<'_>,
) -> Result<Vec<Taken>> {
    let snapshots = file.trace().snapshots();
    let counts = snapshots.iter().map(|snapshot| snapshot.block_count);
    let blocks = counts.fold(0, u64::saturating_add);
    let step = (snapshots.len() as u64).div_ceil(MOMENTS).max(blocks.div_ceil(BLOCKS_MAX)).max(1);
    let mut taken = Vec::new();
    for (place, snapshot) in (1_u64..).zip(snapshots) {
        if !(snapshots.len() as u64 - place).is_multiple_of(step) {
            continue;
        }
        check(is_cancelled)?;
        let mut pieces = Vec::new();
        let mut add = |block: &Block| {
            if Some(block.process) == process && is_of_pages(block.heap) && block.size_bytes > 0 {
                pieces.push((block.address_avma, block.size_bytes, owners.of(file, block.stack)));
            }
        };
        file.trace().for_each_snapshot_block(snapshot, &mut add).map_err(heapr_query::Error::from)?;
        let pages = pages_of(pieces, page_bytes);
        taken.push(Taken { time_ns: snapshot.time_ns, snapshot: Some(snapshot.number), pages });
    }
    Ok(taken)
}

fn is_of_pages(heap: HeapId) -> bool {
    !matches!(heap, HeapId::MMAP | HeapId::RUNTIME)
}

/// Reads the events once, and looks at the live blocks at moments of equal distance.
pub(super) fn of_events(
    file: &TraceFile,
    process: Option<ProcessIndex>,
    page_bytes: u64,
    owners: &mut Owners,
    is_cancelled: IsCancelled<'_>,
) -> Result<Vec<Taken>> {
    let trace = file.trace();
    // Blocks that a process leaves at its end are not live after it.
    let end_ns = process.and_then(|of| trace.processes().get(of.0 as usize)).and_then(|of| of.end_ns);
    let whole_ns = end_ns.map_or(trace.duration_ns(), |end_ns| end_ns.min(trace.duration_ns()));
    let moments_ns: Vec<u64> = (1..=MOMENTS).map(|number| moment_ns(whole_ns, number)).collect();
    let lasting = file.explorer.lasting_blocks(process, &moments_ns, is_of_pages, is_cancelled)?;
    match lasting {
        Some(blocks) => of_lasting(file, &blocks, (whole_ns, page_bytes), owners, is_cancelled),
        None => replayed(file, process, (whole_ns, page_bytes), owners, is_cancelled),
    }
}

/// Takes the pages of the moments from the blocks that live at one.
fn of_lasting(
    file: &TraceFile,
    blocks: &[LastingBlock],
    (whole_ns, page_bytes): (u64, u64),
    owners: &mut Owners,
    is_cancelled: IsCancelled<'_>,
) -> Result<Vec<Taken>> {
    let mut live = LivePages::new(page_bytes);
    let mut moments = Moments { whole_ns, ..Moments::default() };
    let mut ends: Vec<usize> = (0..blocks.len()).filter(|&at| blocks[at].size_bytes > 0).collect();
    ends.sort_by_key(|&at| blocks[at].end);
    let (mut born, mut ended) = (0, 0);
    for moment in 0..MOMENTS as usize {
        check(is_cancelled)?;
        // The places of those that end are free for those that begin.
        while let Some(block) = ends.get(ended).map(|&at| &blocks[at]).filter(|block| block.end <= moment) {
            live.remove(block.address_avma, block.size_bytes, block.stack.0 as usize);
            ended += 1;
        }
        while let Some(block) = blocks.get(born).filter(|block| block.first <= moment) {
            if block.size_bytes > 0 {
                live.add(block.address_avma, block.size_bytes, block.stack.0 as usize);
            }
            born += 1;
        }
        if moments.next == moment as u64 + 1 {
            moments.take(live.pages(|stack| owners.of(file, StackIndex(stack as u32))));
        }
    }
    Ok(moments.taken)
}

/// Takes the pages of the moments from a replay: there is no table of the events, which are too
/// many.
fn replayed(
    file: &TraceFile,
    process: Option<ProcessIndex>,
    (whole_ns, page_bytes): (u64, u64),
    owners: &mut Owners,
    is_cancelled: IsCancelled<'_>,
) -> Result<Vec<Taken>> {
    let trace = file.trace();
    let mut live = Live { blocks: hashbrown::HashMap::new(), pages: LivePages::new(page_bytes) };
    let mut moments = Moments { whole_ns, ..Moments::default() };
    let mut look = |live: &Live| live.pages.pages(|stack| owners.of(file, StackIndex(stack as u32)));
    let processes: Vec<ProcessIndex> = trace.threads().iter().map(|thread| thread.process).collect();
    let mut events = trace.events(0, u64::MAX);
    while let Some(batch) = events.next_batch().map_err(heapr_query::Error::from)? {
        for event in batch {
            while moments.next_ns().is_some_and(|moment_ns| event.time_ns > moment_ns) {
                check(is_cancelled)?;
                moments.take(look(&live));
            }
            if processes.get(event.thread.0 as usize).copied() == process && is_of_pages(event.heap) {
                live.apply(event);
            }
        }
        check(is_cancelled)?;
    }
    while moments.next_ns().is_some() {
        check(is_cancelled)?;
        moments.take(look(&live));
    }
    Ok(moments.taken)
}

/// Time of a moment, of all that are possible.
fn moment_ns(whole_ns: u64, number: u64) -> u64 {
    (u128::from(whole_ns) * u128::from(number) / u128::from(MOMENTS)) as u64
}

/// Moments of a replay up to the end of the process. They become half as many, and so on, if they
/// would be too much work.
struct Moments {
    whole_ns: u64,
    taken: Vec<Taken>,
    /// Number of the next moment, and distance of two, in parts of [`MOMENTS`].
    next: u64,
    step: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { whole_ns: 0, taken: Vec::new(), next: 1, step: 1 }
    }
}

impl Moments {
    /// Time of the next moment; `None` after the last one.
    fn next_ns(&self) -> Option<u64> {
        (self.next <= MOMENTS).then(|| moment_ns(self.whole_ns, self.next))
    }

    /// Takes the pages of the next moment.
    fn take(&mut self, pages: Vec<Page>) {
        let Some(time_ns) = self.next_ns() else { return };
        self.taken.push(Taken { time_ns, snapshot: None, pages });
        self.next += self.step;
        while self.step < STEP_MAX && self.is_too_much() {
            self.step *= 2;
            // The moments taken are at 1, 2, 3 … steps: every second one stays.
            let mut place = 0_u32;
            self.taken.retain(|_| {
                place += 1;
                place.is_multiple_of(2)
            });
            self.next = self.step * (self.taken.len() as u64 + 1);
        }
    }

    /// Whether more moments at this distance would be too much.
    fn is_too_much(&self) -> bool {
        self.taken.iter().map(|taken| taken.pages.len()).sum::<usize>() > PAGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_heap_has_fewer_moments_of_equal_distance_up_to_the_end() {
        let times = |page_count: u64| -> Vec<u64> {
            let mut moments = Moments { whole_ns: 4800, ..Moments::default() };
            while moments.next_ns().is_some() {
                moments.take((0..page_count).map(|number| Page::empty((number, 1))).collect());
            }
            moments.taken.iter().map(|taken| taken.time_ns).collect()
        };
        assert_eq!(times(1000), (1..=48).map(|number| number * 100).collect::<Vec<u64>>());
        assert_eq!(times(70_000), (1..=12).map(|number| number * 400).collect::<Vec<u64>>());
        assert_eq!(times(400_000), [1600, 3200, 4800]);
    }
}
