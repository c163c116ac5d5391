//! Pages of a snapshot by address: how full of live blocks they are, and whose blocks keep pages
//! that are partly free.

use std::collections::HashMap;

use heapr_filters::FilterArguments;
use heapr_query::{FrameView, file_name, plain_symbol};
use heapr_table::SortRows as _;
use heapr_trace::{Block, HeapId, ProcessIndex, Snapshot, StackIndex};
use serde::{Deserialize, Serialize};

use super::series::number;
use crate::command_line::report_command;
use crate::error::{Error, Result};
use crate::ids::stack_id;
use crate::request::{Answer, Context, json, read};
use crate::trace_file::TraceFile;

/// Smallest size of a page, for files that do not tell it.
const PAGE_BYTES_MIN: u64 = 4096;
/// Largest number of cells.
const CELLS_MAX: usize = 2400;
/// Largest number of pages between two blocks that are in one run of cells.
const GAP_PAGES_MAX: u64 = 64;
/// Number of functions with a colour of their own, and of those that are listed.
const OWNERS_MAX: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PagesRequest {
    file: usize,
    #[serde(default)]
    number: Option<u32>,
    #[serde(default)]
    filter: FilterArguments,
}

/// Neighbouring cells.
#[derive(Serialize)]
struct PageRun {
    /// Index of the first cell.
    cell: usize,
    /// Address of the first cell, as hexadecimal text.
    start_avma: String,
}

/// A function whose blocks lie in pages.
#[derive(Default, Serialize)]
struct PageOwner {
    label: String,
    /// Id of its largest stack.
    stack: String,
    /// Free bytes of pages that its blocks keep, shared with the other blocks of each page.
    free_bytes: u64,
    /// Number of its blocks in pages that are at least half free.
    block_count: u64,
    /// Bytes of these blocks.
    block_bytes: u64,
    /// Bytes of all its blocks.
    live_bytes: u64,
}

#[derive(Serialize)]
struct PagesAnswer {
    schema: &'static str,
    command: String,
    shown: u32,
    time_ns: u64,
    page_bytes: u64,
    /// Number of pages with live blocks.
    page_count: u64,
    /// Bytes of live blocks in these pages.
    live_bytes: u64,
    /// Bytes of these pages that are in no live block: free, headers, or not malloc's.
    free_bytes: u64,
    /// Bytes of addresses in a cell.
    cell_bytes: u64,
    runs: Vec<PageRun>,
    /// Functions, by the free bytes that they keep.
    owners: Vec<PageOwner>,
    /// Function with most live bytes in each cell, as an index in `owners`; null for any other.
    owner: Vec<Option<usize>>,
    /// Live bytes of each cell.
    cell_live_bytes: Vec<u64>,
}

/// A block: first byte, length, and the number of its function.
type Piece = (u64, u64, usize);

/// Page with live blocks.
#[derive(Default)]
struct Page {
    number: u64,
    live_bytes: u64,
    /// Live bytes and number of blocks by function.
    by_owner: Vec<(usize, u64, u64)>,
}

pub(super) fn pages(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PagesRequest = read(body)?;
    if request.filter.snapshot.is_some() {
        return Err(Error::bad("filter.snapshot", "the snapshot is named outside of the filter here"));
    }
    let shown = number(context, request.file, request.number)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let words = FilterArguments { snapshot: Some(shown.to_string()), ..request.filter };
    let pids = file.filter(&words)?.filter.pids;
    file.wait_for_names(context.cancel)?;
    let not_there = || Error::NotFound { what: "snapshot", name: shown.to_string() };
    let snapshot = file.trace().snapshot(shown).ok_or_else(not_there)?;
    let (mut owners, pieces) = blocks_of(&file, snapshot, &pids)?;
    context.cancel.check()?;
    let page_bytes = file.trace().system().page_bytes.max(PAGE_BYTES_MIN);
    let pages = pages_of(pieces, page_bytes);
    let (mut live_bytes, mut free_bytes) = (0, 0);
    for page in &pages {
        let free = page_bytes.saturating_sub(page.live_bytes);
        live_bytes += page.live_bytes;
        free_bytes += free;
        let blocks = page.by_owner.iter().map(|(_, _, count)| count).sum::<u64>().max(1);
        for &(owner, bytes, count) in &page.by_owner {
            let owner = &mut owners[owner];
            owner.free_bytes += free * count / blocks;
            if free * 2 >= page_bytes {
                owner.block_count += count;
                owner.block_bytes += bytes;
            }
        }
    }
    let mut order: Vec<usize> = (0..owners.len()).collect();
    order.sort_rows_by_key(|&at| std::cmp::Reverse((owners[at].free_bytes, owners[at].live_bytes)));
    order.truncate(OWNERS_MAX);
    let places: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
    let cells = Cells::of(&pages, page_bytes, &places);
    let mut owners: Vec<Option<PageOwner>> = owners.into_iter().map(Some).collect();
    json(&PagesAnswer {
        schema: "heapr.view.native.pages/1",
        command: report_command(&file, &["--stacks", "so"], &words),
        shown,
        time_ns: snapshot.time_ns,
        page_bytes,
        page_count: pages.len() as u64,
        live_bytes,
        free_bytes,
        cell_bytes: cells.pages_each * page_bytes,
        runs: cells.runs,
        owner: cells.owner,
        cell_live_bytes: cells.live_bytes,
        owners: order.iter().filter_map(|&at| owners[at].take()).collect(),
    })
}

/// Blocks of the process with most of them, and their functions. Addresses are of one process.
fn blocks_of(file: &TraceFile, snapshot: &Snapshot, pids: &[u32]) -> Result<(Vec<PageOwner>, Vec<Piece>)> {
    let (trace, tree) = (file.trace(), file.explorer.tree());
    let is_chosen = |process: ProcessIndex| {
        let pid = trace.processes().get(process.0 as usize).map(|process| process.pid);
        pids.is_empty() || pid.is_some_and(|pid| pids.contains(&pid))
    };
    let chosen = snapshot.processes.iter().filter(|process| is_chosen(process.process));
    let largest = chosen.max_by_key(|process| process.block_bytes).map(|process| process.process);
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut owners: Vec<PageOwner> = Vec::new();
    let mut of_stack: HashMap<StackIndex, usize> = HashMap::new();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut add = |block: &Block| {
        if Some(block.process) != largest || block.heap == HeapId::MMAP || block.size_bytes == 0 {
            return;
        }
        let owner = *of_stack.entry(block.stack).or_insert_with(|| {
            let named = tree.named(block.stack);
            let label = label_of(&file.own, &tree.views(trace.as_ref(), block.stack, named));
            *names.entry(label.clone()).or_insert_with(|| {
                owners.push(PageOwner {
                    label,
                    stack: stack_id((block.stack.0, named)),
                    ..PageOwner::default()
                });
                owners.len() - 1
            })
        });
        owners[owner].live_bytes = owners[owner].live_bytes.saturating_add(block.size_bytes);
        pieces.push((block.address_avma, block.size_bytes, owner));
    };
    trace.for_each_snapshot_block(snapshot, &mut add).map_err(heapr_query::Error::from)?;
    Ok((owners, pieces))
}

/// Name of the function that a stack belongs to.
fn label_of(own: &heapr_query::OwnCode, frames: &[FrameView<'_>]) -> String {
    let place = own.place(frames).or((!frames.is_empty()).then_some(0));
    let Some(frame) = place.and_then(|place| frames.get(place)) else {
        return "blocks without a stack".to_owned();
    };
    match (frame.symbol, frame.module) {
        (Some(symbol), _) => plain_symbol(symbol),
        (None, Some(module)) => format!("{}+{:#x}", file_name(module), frame.offset),
        (None, None) => format!("{:#x}", frame.offset),
    }
}

/// Divides blocks among their pages, in the order of addresses. Only the first and the last page of
/// a block can have room for others: pages between are summed as whole.
fn pages_of(mut pieces: Vec<Piece>, page_bytes: u64) -> Vec<Page> {
    /// Largest number of pages of a block that are listed.
    const PAGES_OF_BLOCK_MAX: u64 = 1 << 20;
    pieces.sort_unstable();
    let mut pages: Vec<Page> = Vec::new();
    for (start, length, owner) in pieces {
        let end = start.saturating_add(length);
        let last = (end - 1) / page_bytes;
        let first = start / page_bytes;
        for number in first..=last.min(first.saturating_add(PAGES_OF_BLOCK_MAX)) {
            let from = start.max(number * page_bytes);
            let to = end.min((number + 1).saturating_mul(page_bytes));
            if pages.last().is_none_or(|page| page.number < number) {
                pages.push(Page { number, ..Page::default() });
            }
            // Overlapping blocks of a false file may lie before the last page.
            let Some(page) = pages.last_mut().filter(|page| page.number == number) else { continue };
            let bytes = (to - from).min(page_bytes.saturating_sub(page.live_bytes));
            page.live_bytes += bytes;
            match page.by_owner.iter_mut().find(|(known, ..)| *known == owner) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + bytes, *count + 1),
                None => page.by_owner.push((owner, bytes, 1)),
            }
        }
    }
    pages
}

/// Cells of equal size over runs of pages.
#[derive(Default)]
struct Cells {
    pages_each: u64,
    runs: Vec<PageRun>,
    owner: Vec<Option<usize>>,
    live_bytes: Vec<u64>,
}

impl Cells {
    fn of(pages: &[Page], page_bytes: u64, places: &HashMap<usize, usize>) -> Self {
        let gap = |two: &[Page]| two[1].number - two[0].number;
        let inside = pages.windows(2).map(gap).filter(|&gap| gap <= GAP_PAGES_MAX).sum::<u64>();
        let breaks = pages.windows(2).filter(|two| gap(two) > GAP_PAGES_MAX).count() as u64;
        let all = inside + breaks + 1;
        let mut cells = Self { pages_each: all.div_ceil(CELLS_MAX as u64).max(1), ..Self::default() };
        let mut start = 0;
        let mut sums: Vec<HashMap<usize, u64>> = Vec::new();
        let mut before: Option<u64> = None;
        for page in pages {
            if before.is_none_or(|before| page.number - before > GAP_PAGES_MAX) {
                start = page.number;
                let start_avma = format!("{:#x}", start.saturating_mul(page_bytes));
                cells.runs.push(PageRun { cell: cells.live_bytes.len(), start_avma });
            }
            before = Some(page.number);
            let first = cells.runs.last().map_or(0, |run| run.cell);
            let cell = first + ((page.number - start) / cells.pages_each) as usize;
            cells.live_bytes.resize((cell + 1).max(cells.live_bytes.len()), 0);
            sums.resize_with(cells.live_bytes.len(), HashMap::new);
            cells.live_bytes[cell] += page.live_bytes;
            for &(owner, bytes, _) in &page.by_owner {
                *sums[cell].entry(owner).or_default() += bytes;
            }
        }
        cells.owner = sums
            .iter()
            .map(|sums| {
                let most = sums.iter().max_by_key(|&(&owner, &bytes)| (bytes, std::cmp::Reverse(owner)));
                most.and_then(|(owner, _)| places.get(owner).copied())
            })
            .collect();
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES_MIN;

    #[test]
    fn a_block_over_pages_is_divided_and_runs_end_at_wide_gaps() {
        let pages =
            pages_of(vec![(PAGE * 1000, 16, 1), (PAGE + 100, PAGE, 0), (PAGE * 2 + 500, 50, 1)], PAGE);
        let told: Vec<_> = pages.iter().map(|page| (page.number, page.live_bytes)).collect();
        assert_eq!(told, [(1, PAGE - 100), (2, 150), (1000, 16)]);
        let cells = Cells::of(&pages, PAGE, &HashMap::from([(0, 0)]));
        assert_eq!((cells.pages_each, cells.runs.len()), (1, 2));
        assert_eq!(cells.live_bytes, [PAGE - 100, 150, 16]);
        assert_eq!(cells.owner, [Some(0), Some(0), None]);
    }

    #[test]
    fn blocks_of_a_false_file_neither_overflow_nor_fill_memory() {
        let pages =
            pages_of(vec![(u64::MAX - 5, 100, 0), (PAGE, 10, 0), (PAGE, 10, 1), (0, PAGE * 3, 2)], PAGE);
        assert!(pages.iter().all(|page| page.live_bytes <= PAGE));
        assert!(pages.is_sorted_by_key(|page| page.number));
        assert!(!Cells::of(&pages, PAGE, &HashMap::new()).live_bytes.is_empty());
        assert!(Cells::of(&[], PAGE, &HashMap::new()).live_bytes.is_empty());
    }
}
