//! Pages of a snapshot by address: how full of live blocks they are, and whose blocks keep pages
//! that are partly free.

use std::collections::HashMap;

use heapr_filters::FilterArguments;
use heapr_query::{Filter, FrameView, file_name, plain_symbol};
use heapr_table::SortRows as _;
use heapr_trace::{Block, HeapId, ProcessIndex, Snapshot, StackIndex, Trace};
use serde::{Deserialize, Serialize};

use super::page_cells::{Layout, Page, PageRun, Piece, pages_of};
use super::series::number;
use crate::command_line::report_command;
use crate::error::{Error, Result};
use crate::ids::stack_id;
use crate::request::{Answer, Context, json, read};
use crate::trace_file::TraceFile;

/// Smallest size of a page, for files that do not tell it, and the largest that is believed.
const PAGE_BYTES_MIN: u64 = 4096;
const PAGE_BYTES_MAX: u64 = 1 << 20;
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

/// A function whose blocks lie in pages.
#[derive(Default, Serialize)]
struct PageOwner {
    label: String,
    /// Id of one of its stacks.
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
    /// Process of the pages: of the chosen ones that with most live bytes; null without blocks.
    pid: Option<u32>,
    /// Number of chosen processes in the snapshot.
    process_count: usize,
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

pub(super) fn pages(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PagesRequest = read(body)?;
    if request.filter.snapshot.is_some() {
        return Err(Error::bad("filter.snapshot", "the snapshot is named outside of the filter here"));
    }
    let shown = number(context, request.file, request.number)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let words = FilterArguments { snapshot: Some(shown.to_string()), ..request.filter };
    let filter = file.filter(&words)?.filter;
    if filter != (Filter { pids: filter.pids.clone(), at: filter.at, ..Filter::default() }) {
        return Err(Error::bad("filter", "pages are told of processes alone"));
    }
    if file.trace().is_sampled() {
        return Err(Error::bad("file", "pages need all blocks, and the recording has samples of them"));
    }
    file.wait_for_names(context.cancel)?;
    let not_there = || Error::NotFound { what: "snapshot", name: shown.to_string() };
    let snapshot = file.trace().snapshot(shown).ok_or_else(not_there)?;
    let Blocks { mut owners, pieces, pid, process_count } = blocks_of(&file, snapshot, &filter.pids)?;
    context.cancel.check()?;
    let page_bytes = page_bytes_of(file.trace());
    let pages = pages_of(pieces, page_bytes);
    let sums = add_up(&pages, page_bytes, &mut owners);
    let mut order: Vec<usize> = (0..owners.len()).collect();
    order.sort_rows_by_key(|&at| std::cmp::Reverse((owners[at].free_bytes, owners[at].live_bytes)));
    order.truncate(OWNERS_MAX);
    let places: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
    let layout = Layout::of(pages.iter(), page_bytes);
    let (cell_live_bytes, owner) = layout.cells(&pages, page_bytes);
    let place_of = |owner: Option<usize>| owner.and_then(|owner| places.get(&owner).copied());
    let mut owners: Vec<Option<PageOwner>> = owners.into_iter().map(Some).collect();
    json(&PagesAnswer {
        schema: "heapr.view.native.pages/1",
        command: report_command(&file, &["--stacks", "so"], &words),
        shown,
        time_ns: snapshot.time_ns,
        pid,
        process_count,
        page_bytes,
        page_count: sums.page_count,
        live_bytes: sums.live_bytes,
        free_bytes: sums.free_bytes,
        cell_bytes: layout.pages_each.saturating_mul(page_bytes),
        runs: layout.runs,
        owner: owner.into_iter().map(place_of).collect(),
        cell_live_bytes,
        owners: order.iter().filter_map(|&at| owners[at].take()).collect(),
    })
}

/// Size of a page of the recorded machine.
pub(crate) fn page_bytes_of(trace: &Trace) -> u64 {
    trace.system().page_bytes.clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
}

/// Name of the function that the blocks of a stack belong to.
pub(crate) fn place_label(file: &TraceFile, stack: StackIndex) -> String {
    let tree = file.explorer.tree();
    label_of(&file.own, &tree.views(file.trace().as_ref(), stack, tree.named(stack)))
}

/// Sums over all pages.
#[derive(Default)]
struct PageSums {
    page_count: u64,
    live_bytes: u64,
    free_bytes: u64,
}

/// Sums pages, and gives owners their shares of what is free in them.
fn add_up(pages: &[Page], page_bytes: u64, owners: &mut [PageOwner]) -> PageSums {
    let mut sums = PageSums::default();
    for page in pages {
        let free = page_bytes.saturating_sub(page.live_bytes);
        sums.page_count = sums.page_count.saturating_add(page.count);
        sums.live_bytes = sums.live_bytes.saturating_add(page.live_bytes);
        sums.free_bytes = sums.free_bytes.saturating_add(free);
        let blocks = page.by_owner.iter().map(|(_, _, count)| count).sum::<u64>().max(1);
        for &(owner, bytes, count) in &page.by_owner {
            let Some(owner) = owners.get_mut(owner) else { continue };
            owner.free_bytes = owner.free_bytes.saturating_add(free.saturating_mul(count) / blocks);
            if free * 2 >= page_bytes {
                owner.block_count += count;
                owner.block_bytes = owner.block_bytes.saturating_add(bytes);
            }
        }
    }
    sums
}

/// Blocks of one process.
struct Blocks {
    owners: Vec<PageOwner>,
    pieces: Vec<Piece>,
    pid: Option<u32>,
    process_count: usize,
}

/// Blocks of the process with most of them, and their functions. Addresses are of one process.
fn blocks_of(file: &TraceFile, snapshot: &Snapshot, pids: &[u32]) -> Result<Blocks> {
    let (trace, tree) = (file.trace(), file.explorer.tree());
    let pid_of = |process: ProcessIndex| trace.processes().get(process.0 as usize).map(|known| known.pid);
    let is_chosen =
        |process: ProcessIndex| pids.is_empty() || pid_of(process).is_some_and(|pid| pids.contains(&pid));
    let chosen: Vec<_> = snapshot.processes.iter().filter(|process| is_chosen(process.process)).collect();
    let largest = chosen.iter().max_by_key(|process| process.block_bytes).map(|process| process.process);
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut owners: Vec<PageOwner> = Vec::new();
    let mut of_stack: HashMap<StackIndex, usize> = HashMap::new();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut add = |block: &Block| {
        let is_other = matches!(block.heap, HeapId::MMAP | HeapId::RUNTIME);
        if Some(block.process) != largest || is_other || block.size_bytes == 0 {
            return;
        }
        let owner = *of_stack.entry(block.stack).or_insert_with(|| {
            let named = tree.named(block.stack);
            let label = place_label(file, block.stack);
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
    Ok(Blocks { owners, pieces, pid: largest.and_then(pid_of), process_count: chosen.len() })
}

/// Name of the function that a stack belongs to.
fn label_of(own: &heapr_query::OwnCode, frames: &[FrameView<'_>]) -> String {
    let place = own.place(frames).or((!frames.is_empty()).then_some(0));
    let Some(frame) = place.and_then(|place| frames.get(place)) else {
        return "blocks without a stack".to_owned();
    };
    match (frame.symbol, frame.module) {
        (Some(symbol), _) => plain_symbol(symbol),
        // A name that stands for allocations without a stack.
        (None, Some(module)) if frame.offset == 0 => file_name(module).to_owned(),
        (None, Some(module)) => format!("{}+{:#x}", file_name(module), frame.offset),
        (None, None) => format!("{:#x}", frame.offset),
    }
}
