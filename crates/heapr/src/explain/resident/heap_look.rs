//! Reads glibc's heap while the process is stopped for some milliseconds. If that would take
//! longer, reads it while the process runs.

use std::io;
use std::time::Duration;

use heapr_glibc_heap::{Plan, ReadStore, Reading, RegionKind, Regions, Rundown, read, regions};
use heapr_inject::{StillProcess, StoppedProcess, stand_still};
use heapr_proc::page_bytes;
use heapr_proc::smaps::{self, MappingPages};
use heapr_proc::{Mapping, PageMap, PageState};
use heapr_resident::PageStates;

use super::quiet_memory::QuietMemory;

/// Heap as it was read at one moment.
#[derive(Debug)]
pub(super) struct HeapLook {
    pub(super) mappings: Vec<MappingPages>,
    pub(super) regions: Regions,
    pub(super) rundown: Rundown,
    pub(super) states: KeptStates,
    pub(super) stack_pointers: Vec<u64>,
    /// Time for which the process was stopped; `None` if it ran.
    pub(super) held: Option<Duration>,
    /// Whether no thread was in the allocator.
    pub(super) is_quiet: bool,
}

/// States of pages at one moment.
#[derive(Debug, Default)]
pub(super) struct KeptStates {
    /// First address of a range, and its pages; sorted by address.
    ranges: Vec<(u64, Vec<PageState>)>,
}

/// Largest number of pages whose states are saved, to bound memory: 64 GiB of address space.
const MOST_PAGES: usize = 16 << 20;

impl KeptStates {
    fn of(regions: &Regions, pages: &PageMap) -> Self {
        let mut kept = Self::default();
        let mut count = 0;
        for region in &regions.regions {
            let start_avma = region.start_avma / page_bytes() * page_bytes();
            let page_count = (region.end_avma - start_avma).div_ceil(page_bytes()) as usize;
            count += page_count;
            if count > MOST_PAGES {
                break;
            }
            kept.ranges.extend(pages.pages(start_avma, page_count).map(|states| (start_avma, states)));
        }
        kept
    }

    /// Returns the pages from `start_avma` on, if all of them were saved.
    pub(super) fn find(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        let place = self.ranges.partition_point(|(first_avma, _)| *first_avma <= start_avma);
        let (first_avma, states) = self.ranges.get(place.checked_sub(1)?)?;
        let first = ((start_avma - first_avma) / page_bytes()) as usize;
        states.get(first..first.checked_add(page_count)?).map(<[PageState]>::to_vec)
    }
}

/// States of pages: the saved ones, and for all others the current ones.
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

/// Longest time for which heapr stops a process by itself.
const MOST_HELD: Duration = Duration::from_millis(20);
/// Bytes of a heap that a slow machine reads in a millisecond.
const BYTES_IN_MS: u64 = 2 << 20;

/// Reads the heap. One that cannot be read within [`MOST_HELD`] is read while the process runs.
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
        // Only one good moment is used.
        outcome = room.take().map(|room| look(still, room));
    })?;
    // The process runs again.
    let read = outcome.ok_or_else(|| io::Error::other("it gave no good moment"))??;
    Ok(read.finish(Some(held)))
}

/// Data of a reading, before it is put in order.
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

/// Whether the process is stopped already, by a debugger or a signal.
fn is_stopped(pid: u32) -> bool {
    heapr_proc::Stat::of_process(pid).is_some_and(|stat| matches!(stat.state(), 'T' | 't'))
}

/// Returns the bytes of the arenas, without blocks that have mappings of their own.
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
