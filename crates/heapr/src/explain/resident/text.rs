//! Breakdown of resident memory as one page of text, whose lines add up.

use std::io::{self, Write};

use heapr_resident::{Class, Line, ToldBy};
use heapr_table::quantity::{bytes, count, duration, percent, plural};

use super::Resident;
use super::pinning::PinnedBy;
use crate::explain::printed_table::ClassTable;

pub(super) fn write(resident: &Resident, out: &mut dyn Write) -> io::Result<()> {
    let account = &resident.account;
    let all = account.pages.rss_bytes;
    writeln!(out, "resident: {}, all of it:", bytes(all))?;
    let mut table = ClassTable::new(all);
    for line in account.lines() {
        table.class(label(&line), line.pages.rss_bytes, notes(&line, resident));
    }
    table.write(out)?;
    heap(resident, out)?;
    own_figures(resident, out)?;
    beside(resident, out)?;
    if let Some(difference) = &resident.difference {
        difference.write_text(out)?;
    }
    if let Some(group) = &resident.group {
        group.write_text(out)?;
    }
    for limit in &resident.limits {
        writeln!(out, "not told: {limit}")?;
    }
    Ok(())
}

/// Returns the name of a line, with the allocator's name if it is of one.
pub(super) fn label(line: &Line) -> String {
    match (line.class, line.parts.first()) {
        (Class::OtherAllocator, Some((name, _))) => format!("memory of {name}"),
        (Class::AllocatorLive, Some((name, _))) => format!("live blocks ({name})"),
        (Class::AllocatorSlack, Some((name, _))) => {
            format!("slack of {}", name.split_once(':').map_or(name.as_str(), |(allocator, _)| allocator))
        }
        _ => line.class.label().to_owned(),
    }
}

/// Returns the remarks beside a line's number.
pub(super) fn notes(line: &Line, resident: &Resident) -> String {
    let mut notes = Vec::new();
    let is_named_already = line.class == Class::OtherAllocator;
    /// Most parts named in a line.
    const MOST_PARTS: usize = 3;
    if line.class == Class::AllocatorSlack {
        let what = |name: &str| name.split_once(": ").map_or(name, |(_, what)| what).to_owned();
        let parts = line.parts.iter().map(|(name, size)| format!("{} {}", what(name), bytes(*size)));
        notes.push(parts.collect::<Vec<_>>().join(", "));
    } else if !is_named_already && (line.parts.len() > 1 || line.class == Class::NamedAnonymous) {
        let shown = line.parts.iter().take(MOST_PARTS);
        let mut parts: Vec<String> = shown.map(|(name, size)| format!("{name} {}", bytes(*size))).collect();
        if line.parts.len() > MOST_PARTS {
            parts.push(format!("{} more", line.parts.len() - MOST_PARTS));
        }
        notes.push(parts.join(", "));
    }
    // A single file, or kind of shared memory, is named as several are.
    if let (
        [(name, _)],
        Class::Files | Class::SharedMemory | Class::Code | Class::ReadOnlyData | Class::WrittenData,
    ) = (line.parts.as_slice(), line.class)
    {
        notes.push(name.clone());
    }
    match line.class {
        Class::FreeWholePages => notes.push("malloc_trim(0) would give these back".to_owned()),
        Class::FreePinned => {
            let heap = resident.account.heap.as_ref().map(|heap| heap.all).unwrap_or_default();
            let blocks = plural(heap.pinning_blocks, "block");
            notes.push(format!(
                "pages at least half free are kept by {blocks} of {}",
                bytes(heap.pinning_bytes)
            ));
        }
        Class::GlibcHeap | Class::LiveBlocks if resident.account.arena_count > 1 => {
            notes.push(plural(u64::from(resident.account.arena_count), "arena"));
        }
        Class::ThreadStacks => notes.push(plural(resident.beside.threads, "thread")),
        Class::PythonArenas => {
            let pools = &resident.account.python;
            notes.push(format!("blocks in use {} of {}", bytes(pools.used_bytes), bytes(pools.pool_bytes)));
        }
        _ => {}
    }
    let pages = &line.pages;
    let amounts = [
        ("shared with others", pages.shared_bytes()),
        ("in huge pages", pages.anonymous_huge_bytes + pages.mapped_huge_bytes),
        ("lazily freed", pages.lazily_freed_bytes),
        ("locked", pages.locked_bytes),
    ];
    let amounts = amounts.iter().filter(|(_, amount)| *amount > 0);
    notes.extend(amounts.map(|(what, amount)| format!("{what} {}", bytes(*amount))));
    if line.told_by == ToldBy::Elimination && line.class != Class::Unknown {
        notes.push("told by elimination".to_owned());
    }
    notes.join("; ")
}

/// Most stacks that pin memory shown.
const MOST_PINNED: usize = 5;

/// Formats a stack in one line, the innermost frames first.
fn stack(pinned: &PinnedBy) -> String {
    const MOST_FRAMES: usize = 3;
    match pinned.frames.as_slice() {
        [] => pinned.name(),
        frames => frames.iter().take(MOST_FRAMES).map(String::as_str).collect::<Vec<_>>().join(" <- "),
    }
}

/// Writes the state of malloc's heap, and how it was read.
fn heap(resident: &Resident, out: &mut dyn Write) -> io::Result<()> {
    let (Some(heap), Some(moment)) = (&resident.account.heap, resident.moment) else { return Ok(()) };
    let how = match moment.held {
        Some(held) => format!("the process stood still for {}", duration(held.as_nanos() as u64)),
        None => {
            "the process ran while its heap was read: what changed meanwhile may be counted wrong".to_owned()
        }
    };
    writeln!(
        out,
        "malloc: {}, {} with mappings of their own; {}",
        plural(heap.live_blocks, "live block"),
        count(heap.mapped_blocks),
        how
    )?;
    if let Some(recorded) = resident.recorded {
        let blocks = plural(recorded.count, "block");
        writeln!(out, "  recorded: {blocks} of {}, each with its stack", bytes(recorded.bytes))?;
    }
    for pinned in resident.pinned_by.iter().take(MOST_PINNED) {
        let (free, blocks) = (bytes(pinned.free_bytes), plural(pinned.blocks.count, "block"));
        let share = percent(pinned.free_bytes, heap.all.pinned_bytes);
        writeln!(
            out,
            "  {free} ({share}) pinned by {blocks} of {}: {}",
            bytes(pinned.blocks.bytes),
            stack(pinned)
        )?;
    }
    if moment.held.is_some() && !moment.is_quiet {
        writeln!(out, "  a thread was in the allocator all the time: some chunks may be counted wrong")?;
    }
    /// Most findings shown: an overwritten heap has thousands.
    const MOST_FINDINGS: usize = 3;
    for finding in heap.findings.iter().take(MOST_FINDINGS) {
        writeln!(out, "  {finding}")?;
    }
    let more = heap.findings.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        writeln!(out, "  and {more} more of this kind")?;
    }
    Ok(())
}

/// Writes figures of allocators and runtimes themselves, which count addresses, resident or not.
fn own_figures(resident: &Resident, out: &mut dyn Write) -> io::Result<()> {
    if let Some(figures) = &resident.malloc_figures {
        writeln!(
            out,
            "  malloc's own figures: in arenas {}, used {}, free {}; with mappings of their own {}",
            bytes(figures.arena_bytes),
            bytes(figures.used_bytes),
            bytes(figures.free_bytes),
            bytes(figures.mapped_bytes)
        )?;
    }
    for heap in &resident.account.foreign {
        let figures = heap.figures.iter().filter(|figure| figure.bytes > 0).map(|figure| {
            let name = figure.name.strip_suffix("_bytes").unwrap_or(figure.name).replace('_', " ");
            format!("{name} {}", bytes(figure.bytes))
        });
        writeln!(out, "{}'s own figures: {}", heap.allocator, figures.collect::<Vec<_>>().join(", "))?;
    }
    resident.v8.iter().try_for_each(|v8| v8.write_text(resident, out))?;
    resident.objects.iter().try_for_each(|objects| objects.write_text(out))
}

fn beside(resident: &Resident, out: &mut dyn Write) -> io::Result<()> {
    let beside = &resident.beside;
    let amounts = [
        ("page tables", beside.page_table_bytes),
        ("kernel stacks", beside.kernel_stack_bytes),
        ("swap", beside.swapped_bytes),
        ("reserved huge pages", beside.reserved_huge_bytes),
    ];
    let parts: Vec<String> = amounts
        .iter()
        .enumerate()
        .filter(|(at, (_, amount))| *at < 3 || *amount > 0)
        .map(|(_, (what, amount))| format!("{what} {}", bytes(*amount)))
        .collect();
    writeln!(out, "not in it: {}", parts.join(", "))?;
    let pages = &resident.account.pages;
    if resident.account.is_of_counters {
        return writeln!(out, "of it an unknown part shared with other processes; its share of all: unknown");
    }
    writeln!(
        out,
        "of it {} shared with other processes; its share of all: {}",
        bytes(pages.shared_bytes()),
        bytes(pages.pss_bytes)
    )
}
