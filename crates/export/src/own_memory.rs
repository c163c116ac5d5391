//! Sentences about the explained share of a process's anonymous memory. Every command that prints
//! totals prints them.

use std::collections::HashMap;

use heapr_query::engine::{CodeTable, StackSource as _, SymbolTree};
use heapr_query::{FrameView, OwnCode, SymbolSource, file_name, plain_symbol};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, within};
use heapr_trace::{HeapId, MemoryAccount, MemoryPart, ProcessIndex, StackIndex, Trace};

use crate::process_name::ProcessName;

/// Names of the code that mapped memory, by the stack of the mapping.
pub(crate) type Mappers = HashMap<StackIndex, String>;

/// Largest number of parts that are named. Only parts of at least a fiftieth of the memory are
/// candidates.
const PARTS_SHOWN: usize = 3;

/// Intervals of those parts of accounts that are computed from recorded blocks. If blocks are
/// sampled, the bytes in blocks and the free bytes beside them are estimates.
#[derive(Debug, Default)]
pub struct OwnMemoryIntervals {
    half_of_blocks: HashMap<ProcessIndex, u64>,
}

impl OwnMemoryIntervals {
    /// Computes the intervals of a recording. An account has the blocks of a process's heap at its
    /// peak.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        if !trace.is_sampled() {
            return Self::default();
        }
        let by_heap = trace.summary_totals().ok().flatten().map_or_else(Vec::new, |summary| summary.by_heap);
        let of_malloc = by_heap.into_iter().filter(|(_, heap, _)| *heap == HeapId::MALLOC);
        let half = |(process, _, totals): (ProcessIndex, HeapId, heapr_trace::Totals)| {
            let blocks = totals.amounts().at_peak();
            let beside = blocks.count_plus_minus().saturating_mul(MemoryPart::BESIDE_BLOCK_BYTES);
            (process, blocks.bytes_plus_minus().saturating_add(beside))
        };
        Self { half_of_blocks: of_malloc.map(half).collect() }
    }

    /// Half of the 95 % interval of a part of an account; 0: the part is no estimate.
    #[must_use]
    pub fn plus_minus(&self, account: &MemoryAccount, part: &MemoryPart) -> u64 {
        let half = self.half_of_blocks.get(&account.process).copied();
        half.filter(|_| part.kind.is_of_blocks()).unwrap_or(0)
    }
}

/// Lines about the process with the most anonymous memory: the amount, its explained share and the
/// largest parts. The process is named if there are several.
#[must_use]
pub fn own_memory(trace: &Trace) -> Vec<String> {
    lines(trace, &Mappers::new())
}

/// Variant of [`own_memory`] with the own frame of the code that mapped memory.
#[must_use]
pub fn own_memory_by_name(trace: &Trace, own: &OwnCode, symbols: &mut dyn SymbolSource) -> Vec<String> {
    lines(trace, &mappers_by_name(trace, own, symbols))
}

/// Names of the code that mapped memory, for all accounts of a recording.
pub(crate) fn mappers_by_name(trace: &Trace, own: &OwnCode, symbols: &mut dyn SymbolSource) -> Mappers {
    let mut wanted = vec![false; trace.node_count() as usize];
    let parts = || trace.memory_accounts().iter().flat_map(|account| &account.parts);
    for part in parts() {
        let mut next = part.stack;
        while next != StackIndex::EMPTY
            && let Some(is_wanted) = wanted.get_mut(next.0 as usize)
        {
            *is_wanted = true;
            next = trace.parent(next);
        }
    }
    if !wanted.contains(&true) {
        return Mappers::new();
    }
    let tree = SymbolTree::build(trace, CodeTable::new(trace.mappings()), symbols, wanted);
    mappers(trace, own, &tree)
}

/// Variant of [`own_memory_by_name`] with the names of a tree.
#[must_use]
pub fn own_memory_of_tree(trace: &Trace, own: &OwnCode, tree: &SymbolTree) -> Vec<String> {
    lines(trace, &mappers(trace, own, tree))
}

fn mappers(trace: &Trace, own: &OwnCode, tree: &SymbolTree) -> Mappers {
    let parts = trace.memory_accounts().iter().flat_map(|account| &account.parts);
    let stacks = parts.map(|part| part.stack).filter(|&stack| stack != StackIndex::EMPTY);
    stacks
        .filter_map(|stack| {
            let views = tree.views(trace, stack, tree.named(stack));
            // Without an own frame, the first frame with a name is used.
            let place = own.place(&views).or_else(|| views.iter().position(|view| view.symbol.is_some()));
            Some((stack, views.get(place?).and_then(mapper)?))
        })
        .collect()
}

fn mapper(view: &FrameView<'_>) -> Option<String> {
    let name = plain_symbol(view.symbol?);
    Some(match (view.file, view.line) {
        (Some(file), Some(line)) => format!("{name} ({}:{line})", file_name(file)),
        _ => name,
    })
}

fn lines(trace: &Trace, mappers: &Mappers) -> Vec<String> {
    let processes = trace.processes();
    let name = |account: &MemoryAccount| {
        let known = processes.get(account.process.0 as usize).filter(|_| processes.len() > 1)?;
        Some(ProcessName::from(known).to_string())
    };
    own_memory_lines(trace.memory_accounts(), name, mappers, &OwnMemoryIntervals::of(trace))
}

fn own_memory_lines(
    accounts: &[MemoryAccount],
    name: impl Fn(&MemoryAccount) -> Option<String>,
    mappers: &Mappers,
    intervals: &OwnMemoryIntervals,
) -> Vec<String> {
    let Some(largest) = accounts.iter().max_by_key(|account| account.anonymous_bytes) else {
        return Vec::new();
    };
    let whose = name(largest).map(|name| format!(" in {name}")).unwrap_or_default();
    let all = largest.anonymous_bytes;
    let explained = percent(largest.explained_bytes(), all);
    let mut parts: Vec<&MemoryPart> = largest.parts.iter().collect();
    parts.sort_rows_by_key(|part| std::cmp::Reverse(part.bytes));
    let shown = parts.iter().filter(|part| part.bytes >= all / 50).take(PARTS_SHOWN);
    let told = |part: &&MemoryPart| {
        let by = mappers.get(&part.stack).map(|name| format!(" in {name}")).unwrap_or_default();
        let share = match intervals.plus_minus(largest, part) {
            0 => percent(part.bytes, all),
            half => within(&percent(part.bytes, all), &percent_at_most(half, all)),
        };
        format!("{share} {}{by}", part.kind)
    };
    let shown: Vec<String> = shown.map(told).collect();
    let mut lines = vec![format!("{} seen at most{whose}, {explained} of it explained", bytes(all))];
    lines.extend((!shown.is_empty()).then(|| shown.join(", ")));
    lines
}

/// Share in percent, rounded down: an incomplete share is never 100 %.
fn percent(part: u64, all: u64) -> String {
    format!("{} %", u128::from(part) * 100 / u128::from(all.max(1)))
}

/// Share in percent, rounded up: half of an interval is never shown too narrow.
fn percent_at_most(part: u64, all: u64) -> String {
    format!("{} %", (u128::from(part) * 100).div_ceil(u128::from(all.max(1))))
}

#[cfg(test)]
mod tests {
    use heapr_trace::PartKind;

    use super::*;

    #[test]
    fn the_largest_process_is_told_with_its_largest_parts() {
        let part = |kind, bytes| MemoryPart { kind, bytes, stack: StackIndex::EMPTY, is_unseen: false };
        let small = MemoryAccount { anonymous_bytes: 1 << 20, ..MemoryAccount::default() };
        let parts = vec![
            part(PartKind::ThreadStacks, 1 << 10),
            part(PartKind::RecordedBlocks, 1 << 20),
            part(PartKind::Other("free".to_owned()), 6 << 20),
        ];
        let large = MemoryAccount { anonymous_bytes: 8 << 20, parts, ..small.clone() };
        let counted = OwnMemoryIntervals::default();
        let lines = own_memory_lines(&[small.clone(), large.clone()], |_| None, &Mappers::new(), &counted);
        assert_eq!(lines, ["8.00 MiB seen at most, 87 % of it explained", "75 % free, 12 % recorded blocks"]);
        assert!(own_memory_lines(&[], |_| None, &Mappers::new(), &counted).is_empty());
        let mut mapped = large;
        let kind = PartKind::Mapped { owners: Vec::new(), by: "a".to_owned() };
        mapped.parts[2] = MemoryPart { kind, stack: StackIndex(7), ..mapped.parts[2].clone() };
        let mappers = Mappers::from([(StackIndex(7), "grow (a.c:3)".to_owned())]);
        let lines = own_memory_lines(&[mapped.clone()], |_| None, &mappers, &counted);
        assert_eq!(lines[1], "75 % mapped by a in grow (a.c:3), 12 % recorded blocks");
        let sampled =
            OwnMemoryIntervals { half_of_blocks: HashMap::from([(ProcessIndex::default(), 100 << 10)]) };
        let lines = own_memory_lines(&[mapped], |_| None, &mappers, &sampled);
        assert_eq!(lines[1], "75 % mapped by a in grow (a.c:3), 12 % ± 2 % recorded blocks");
        assert_eq!(percent(999, 1000), "99 %");
        assert_eq!(percent(0, 0), "0 %");
    }
}
