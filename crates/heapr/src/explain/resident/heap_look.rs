//! Looking into glibc's heap: while the process stands still for some milliseconds, or, where that
//! would take longer, while it runs.

use std::io;
use std::time::Duration;

use heapr_glibc_heap::{PAGE_BYTES, Plan, ReadStore, Reading, RegionKind, Regions, Rundown, read, regions};
use heapr_inject::{StillProcess, StoppedProcess, stand_still};
use heapr_proc::smaps::{self, MappingPages};
use heapr_proc::{Mapping, PageMap, PageState};
use heapr_resident::PageStates;

use super::quiet_memory::QuietMemory;

/// What was read at one moment.
#[derive(Debug)]
pub(super) struct HeapLook {
    pub(super) mappings: Vec<MappingPages>,
    pub(super) regions: Regions,
    pub(super) rundown: Rundown,
    pub(super) states: KeptStates,
    pub(super) stack_pointers: Vec<u64>,
    /// How long the process stood still; `None`: it ran.
    pub(super) held: Option<Duration>,
    /// No thread was in the allocator.
    pub(super) is_quiet: bool,
}

/// States of pages as they were at one moment.
#[derive(Debug, Default)]
pub(super) struct KeptStates {
    /// First addresses and pages, by address.
    ranges: Vec<(u64, Vec<PageState>)>,
}

/// Keeping them takes memory: so many pages are of 64 GiB.
const MOST_PAGES: usize = 16 << 20;

impl KeptStates {
    fn of(regions: &Regions, pages: &PageMap) -> Self {
        let mut kept = Self::default();
        let mut count = 0;
        for region in &regions.regions {
            let start_avma = region.start_avma / PAGE_BYTES * PAGE_BYTES;
            let page_count = (region.end_avma - start_avma).div_ceil(PAGE_BYTES) as usize;
            count += page_count;
            if count > MOST_PAGES {
                break;
            }
            kept.ranges.extend(pages.pages(start_avma, page_count).map(|states| (start_avma, states)));
        }
        kept
    }

    /// The pages from `start_avma` on, if all of them were kept.
    pub(super) fn find(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        let place = self.ranges.partition_point(|(first_avma, _)| *first_avma <= start_avma);
        let (first_avma, states) = self.ranges.get(place.checked_sub(1)?)?;
        let first = ((start_avma - first_avma) / PAGE_BYTES) as usize;
        states.get(first..first.checked_add(page_count)?).map(<[PageState]>::to_vec)
    }
}

/// The pages as they were, and those that were not kept as they are.
#[derive(Debug)]
pub(super) struct BothStates<'a> {
    pub(super) kept: Option<&'a KeptStates>,
    pub(super) pages: Option<&'a PageMap>,
}

impl PageStates for BothStates<'_> {
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        let kept = self.kept.and_then(|kept| kept.find(start_avma, page_count));
        kept.or_else(|| self.pages?.pages(start_avma, page_count))
    }
}

/// The longest that a process is made to stand still by itself.
const MOST_HELD: Duration = Duration::from_millis(20);
/// What is read of a heap in a millisecond, on slow machines.
const BYTES_IN_MS: u64 = 2 << 20;

/// Looks. A heap that cannot be read in [`MOST_HELD`] is read while the process runs.
pub(super) fn look(
    pid: u32,
    plan: &Plan,
    process: &StoppedProcess,
    pages: &PageMap,
) -> anyhow::Result<HeapLook> {
    let mut room = plan.room(process);
    let heap_bytes = heap_bytes(pid, plan, process, pages)?;
    let look = |still: &StillProcess, room| at_once(pid, plan, process, pages, still, room);
    if heap_bytes > BYTES_IN_MS * MOST_HELD.as_millis() as u64 && !is_stopped(pid) {
        return Ok(look(&StillProcess::default(), &mut room)?.finish(None));
    }
    let (mut room, mut outcome) = (Some(&mut room), None);
    let held = stand_still(pid, &mut |still| {
        // There is one good moment only.
        outcome = room.take().map(|room| look(still, room));
    })?;
    // The process runs again.
    let read = outcome.ok_or_else(|| io::Error::other("it gave no good moment"))??;
    Ok(read.finish(Some(held)))
}

/// What was read before it is put in order.
struct HeapRead<'s> {
    mappings: Vec<MappingPages>,
    regions: Regions,
    reading: Reading<'s>,
    states: KeptStates,
    still: StillProcess,
}

impl HeapRead<'_> {
    fn finish(self, held: Option<Duration>) -> HeapLook {
        HeapLook {
            mappings: self.mappings,
            regions: self.regions,
            rundown: self.reading.finish(),
            states: self.states,
            stack_pointers: self.still.stack_pointers,
            held,
            is_quiet: self.still.is_allocator_quiet,
        }
    }
}

/// Whether it stands still already: a debugger, or a signal.
fn is_stopped(pid: u32) -> bool {
    heapr_proc::Stat::of_process(pid).is_some_and(|stat| matches!(stat.state(), 'T' | 't'))
}

/// Bytes of the arenas: blocks with mappings of their own are not read.
fn heap_bytes(pid: u32, plan: &Plan, process: &StoppedProcess, pages: &PageMap) -> anyhow::Result<u64> {
    let mappings: Vec<Mapping> = heapr_proc::mappings::read(pid)?;
    let memory = QuietMemory::new(process, Some(pages), &mappings);
    let found = regions(plan, &memory, &[])?;
    let arenas = found.regions.iter().filter(|region| region.kind != RegionKind::MappedBlock);
    Ok(arenas.map(|region| region.end_avma - region.start_avma).sum::<u64>().min(found.arena_bytes.max(1)))
}

fn at_once<'s>(
    pid: u32,
    plan: &Plan,
    process: &StoppedProcess,
    pages: &PageMap,
    still: &StillProcess,
    room: &'s mut ReadStore,
) -> anyhow::Result<HeapRead<'s>> {
    let mappings = smaps::read(pid)?;
    let addresses: Vec<Mapping> = mappings.iter().map(|found| found.mapping.clone()).collect();
    let regions = regions(plan, &QuietMemory::new(process, Some(pages), &addresses), &[])?;
    let states = KeptStates::of(&regions, pages);
    let reading = read(plan, process, &still.thread_pointers, room)?;
    Ok(HeapRead { mappings, regions, reading, states, still: still.clone() })
}
