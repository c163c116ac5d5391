//! Resident memory of a process as JSON.

use heapr_resident::{Class, ForeignHeap, HeapDetail, HeapDivision, Line, MallocFigures};
use serde_json::{Value, json};

use super::difference::Difference;
use super::group::Group;
use super::objects::ObjectSum;
use super::pinning::PinnedBy;
use super::v8_figures::V8Figures;
use super::{Moment, Resident};

/// Number of cells of the strip of pages by address, which fits a screen.
const PAGE_CELLS: usize = 960;

/// Returns the JSON value. `lines` add up to `rss_bytes`; `unknown_bytes` repeats the line
/// `unknown`.
pub(super) fn value(resident: &Resident) -> Value {
    let account = &resident.account;
    let pages = &account.pages;
    let known = |amount: u64| (!account.is_of_counters).then_some(amount);
    json!({
        "pid": resident.pid,
        "executable": resident.executable,
        "rss_bytes": pages.rss_bytes,
        "pss_bytes": known(pages.pss_bytes),
        "shared_bytes": known(pages.shared_bytes()),
        "lines": account.lines().iter().map(|one| line(one, resident)).collect::<Vec<_>>(),
        "pages": account.page_cells(PAGE_CELLS),
        "unknown_bytes": account.bytes(Class::Unknown),
        "arena_count": account.arena_count,
        "malloc": account.heap.as_ref().map(|heap| malloc(heap, resident.moment)),
        "malloc_figures": resident.malloc_figures.as_ref().map(malloc_figures),
        "allocators": account.foreign.iter().map(allocator).collect::<Vec<_>>(),
        "v8": resident.v8.as_ref().map(V8Figures::json),
        "objects": resident.objects.as_ref().map(ObjectSum::json),
        "pinned_by": resident.pinned_by.iter().map(PinnedBy::json).collect::<Vec<_>>(),
        "recorded": resident.recorded.map(|recorded| json!({"count": recorded.count, "bytes": recorded.bytes})),
        "beside": {
            "swapped_bytes": resident.beside.swapped_bytes,
            "page_table_bytes": resident.beside.page_table_bytes,
            "kernel_stack_bytes": resident.beside.kernel_stack_bytes,
            "reserved_huge_bytes": resident.beside.reserved_huge_bytes,
            "threads": resident.beside.threads,
        },
        "since": resident.difference.as_ref().map(Difference::json),
        "group": resident.group.as_ref().map(Group::json),
        "not_told": resident.limits,
    })
}

fn malloc(heap: &HeapDetail, moment: Option<Moment>) -> Value {
    let arena = |(number, division): (&u32, &HeapDivision)| {
        let mut value = self::division(division);
        value["arena"] = json!(number);
        value
    };
    json!({
        "held_ns": moment.and_then(|moment| moment.held).map(|held| held.as_nanos() as u64),
        "is_allocator_quiet": moment.is_some_and(|moment| moment.is_quiet),
        "live_blocks": heap.live_blocks,
        "mapped_blocks": heap.mapped_blocks,
        "all": division(&heap.all),
        "arenas": heap.arenas.iter().map(arena).collect::<Vec<_>>(),
        "findings": heap.findings,
    })
}

fn malloc_figures(figures: &MallocFigures) -> Value {
    json!({
        "arena_bytes": figures.arena_bytes,
        "used_bytes": figures.used_bytes,
        "free_bytes": figures.free_bytes,
        "top_bytes": figures.top_bytes,
        "mapped_bytes": figures.mapped_bytes,
    })
}

fn allocator(heap: &ForeignHeap) -> Value {
    let figures = heap.figures.iter().map(|figure| (figure.name.to_owned(), json!(figure.bytes)));
    json!({"allocator": heap.allocator, "figures": figures.collect::<serde_json::Map<_, _>>()})
}

fn division(division: &HeapDivision) -> Value {
    json!({
        "live_bytes": division.live_bytes,
        "header_bytes": division.header_bytes,
        "free_whole_bytes": division.whole_bytes,
        "free_pinned_bytes": division.pinned_bytes,
        "thread_cache_bytes": division.thread_cache_bytes,
        "top_bytes": division.top_bytes,
        "foreign_bytes": division.foreign_bytes,
        "pinning_blocks": division.pinning_blocks,
        "pinning_bytes": division.pinning_bytes,
    })
}

fn line(line: &Line, resident: &Resident) -> Value {
    /// Most parts of a line; large programs have more libraries than are useful.
    const MOST_PARTS: usize = 32;
    let parts = line.parts.iter().take(MOST_PARTS);
    let known = |amount: u64| (!resident.account.is_of_counters).then_some(amount);
    json!({
        "class": line.class,
        "label": super::text::label(line),
        "note": super::text::notes(line, resident),
        "bytes": line.pages.rss_bytes,
        "pss_bytes": known(line.pages.pss_bytes),
        "shared_bytes": known(line.pages.shared_bytes()),
        "huge_bytes": known(line.pages.anonymous_huge_bytes + line.pages.mapped_huge_bytes),
        "lazily_freed_bytes": known(line.pages.lazily_freed_bytes),
        "swapped_bytes": known(line.pages.swapped_bytes),
        "locked_bytes": known(line.pages.locked_bytes),
        "piece_count": line.piece_count,
        "told_by": line.told_by,
        "parts": parts.map(|(name, bytes)| json!({"name": name, "bytes": bytes})).collect::<Vec<_>>(),
    })
}
