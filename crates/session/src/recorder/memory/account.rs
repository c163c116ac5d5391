//! Accounts for all of a process's memory, from a reading of it and from what was recorded.

use std::collections::{BTreeMap, HashMap};

use heapr_trace::{MemoryAccount, MemoryPart, PartKind, StackIndex};

use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::state::process_state::Region;

/// Bytes that an allocator may need for itself even with few blocks.
pub(super) const ALLOCATOR_BYTES: u64 = 8 << 20;

/// Sums of the peaks of a process's heaps, without the mmap heap: an upper bound of its recorded
/// blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Blocks {
    fn with_overhead(&self) -> u64 {
        self.bytes.saturating_add(self.count.saturating_mul(MemoryPart::BESIDE_BLOCK_BYTES))
    }
}

/// Owners of the parts of a process's memory.
pub(super) trait Owners {
    /// Kind of the mappings made by a stack; `None` if an allocator made them whose blocks are
    /// recorded.
    fn of_stack(&self, stack: StackIndex) -> Option<PartKind>;
    /// Whether the runtime itself samples Go's heap.
    fn shows_go(&self) -> bool;
    /// Kind of the mappings whose making was not recorded, if the process's files show a likely
    /// owner.
    fn of_rest(&self) -> Option<PartKind>;
}

/// Splits some mappings of a reading (start, end, bytes) by the stack that made them. The second
/// result is the bytes of mappings whose making was not recorded. `regions`: current mappings, then
/// former ones.
fn by_stack(
    mappings: &[(u64, u64, u64)],
    regions: [&BTreeMap<u64, Region>; 2],
) -> (HashMap<StackIndex, u64>, u64) {
    let mut sums: HashMap<StackIndex, u64> = HashMap::new();
    let mut unclaimed_bytes = 0_u64;
    for &(start, end, bytes) in mappings {
        let mut left_bytes = bytes;
        for known in regions {
            let overlaps = overlaps(known, start, end);
            let all: u64 = overlaps.iter().map(|(size, _)| *size).fold(0, u64::saturating_add);
            let claimed = left_bytes.min(all);
            // Shares are differences of running sums, so that no byte is lost by rounding.
            let share_of = |sizes: u64| u128::from(claimed) * u128::from(sizes) / u128::from(all.max(1));
            let mut before = 0_u64;
            for (size, stack) in overlaps {
                let after = before.saturating_add(size).min(all);
                let share = share_of(after) - share_of(before);
                before = after;
                let sum = sums.entry(stack).or_default();
                *sum = sum.saturating_add(u64::try_from(share).unwrap_or(0));
            }
            left_bytes -= claimed;
        }
        unclaimed_bytes = unclaimed_bytes.saturating_add(left_bytes);
    }
    (sums, unclaimed_bytes)
}

/// Parts of known mappings within a range: bytes and stack. The search stops at the first mapping
/// that ends before the range: current mappings do not overlap. Former ones may, and then some can
/// be missed.
fn overlaps(known: &BTreeMap<u64, Region>, start: u64, end: u64) -> Vec<(u64, StackIndex)> {
    let before = known.range(..end).rev();
    let ends = before.map(|(&begin, region)| (begin, begin.saturating_add(region.size_bytes), region));
    ends.take_while(|&(_, region_end, _)| region_end > start)
        .map(|(begin, region_end, region)| (region_end.min(end) - begin.max(start), region.stack))
        .collect()
}

/// Accounts for the memory of a reading. `spare_bytes`: `Some` if allocators other than the C
/// library's are recorded; they may hold that many mapped bytes even with few blocks.
pub(super) fn account(
    look: &MemoryLook,
    blocks: Blocks,
    regions: [&BTreeMap<u64, Region>; 2],
    spare_bytes: Option<u64>,
    owners: &impl Owners,
) -> MemoryAccount {
    let mut rest = look.own_bytes();
    let mut parts = Vec::new();
    let mut take = |kind: PartKind, bytes: u64, stack: StackIndex, is_unseen: bool| {
        let bytes = bytes.min(rest);
        rest -= bytes;
        if bytes > 0 {
            parts.push(MemoryPart { kind, bytes, stack, is_unseen });
        }
    };
    const NOBODY: StackIndex = StackIndex::EMPTY;
    let (mapped, unclaimed_bytes) = by_stack(&look.mapped, regions);
    // Memory that the program got by `brk` itself; the rest of that heap is the C library's.
    let (by_brk, _) = by_stack(&look.by_brk, regions);
    let mut taken_bytes = 0_u64;
    let by_brk = by_brk.into_iter().map(|entry| (entry, true));
    let mapped = by_brk.chain(mapped.into_iter().map(|entry| (entry, false)));
    let mut named: Vec<(PartKind, (u64, u64, StackIndex))> = Vec::new();
    let mut of_allocators = 0_u64;
    for ((stack, bytes), is_by_brk) in mapped {
        let Some(kind) = owners.of_stack(stack) else {
            if !is_by_brk {
                of_allocators = of_allocators.saturating_add(bytes);
            }
            continue;
        };
        if is_by_brk {
            taken_bytes = taken_bytes.saturating_add(bytes);
        }
        let place = named.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            named.push((kind, (0, 0, NOBODY)));
            named.len() - 1
        });
        let entry = &mut named[place].1;
        entry.0 = entry.0.saturating_add(bytes);
        // The largest mapping's stack stands for all.
        if bytes >= entry.1 {
            (entry.1, entry.2) = (bytes, stack);
        }
    }
    take(PartKind::WrittenData, look.data_bytes, NOBODY, false);
    take(PartKind::ThreadStacks, look.stack_bytes, NOBODY, false);
    // Recorded blocks are in the heap or in mappings of allocators. Large blocks are each in a
    // mapping whose making was not recorded.
    let heap_bytes = look.heap_bytes.saturating_sub(taken_bytes);
    let block_bytes = blocks.with_overhead();
    let all_bytes = heap_bytes.saturating_add(of_allocators).saturating_add(unclaimed_bytes);
    let in_blocks = block_bytes.min(all_bytes);
    take(PartKind::RecordedBlocks, in_blocks, NOBODY, false);
    let in_heap = in_blocks.min(heap_bytes);
    let mut free_bytes = heap_bytes - in_heap;
    if let Some(spare_bytes) = spare_bytes {
        let mapped_bytes = of_allocators.saturating_add(unclaimed_bytes) - (in_blocks - in_heap);
        free_bytes = free_bytes.saturating_add(mapped_bytes.min(block_bytes.max(spare_bytes)));
    }
    take(PartKind::FreeInAllocator, free_bytes, NOBODY, false);
    named.sort_by_key(|(kind, (bytes, ..))| (std::cmp::Reverse(*bytes), kind.to_string()));
    for (kind, (bytes, _, stack)) in named {
        take(kind, bytes, stack, true);
    }
    let is_sampled = owners.shows_go();
    take(PartKind::GoHeap { is_sampled }, look.go_bytes, NOBODY, !is_sampled);
    if let Some(kind) = owners.of_rest() {
        // Other mappings of a runtime whose heap is sampled count as its overhead.
        take(kind, u64::MAX, NOBODY, !is_sampled);
    }
    MemoryAccount {
        anonymous_bytes: look.own_bytes(),
        agent_bytes: look.agent_bytes,
        parts,
        ..MemoryAccount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(Option<&'static str>);

    impl Owners for Plain {
        fn of_stack(&self, stack: StackIndex) -> Option<PartKind> {
            (stack.0 != 9).then(|| PartKind::Mapped { owners: Vec::new(), by: stack.0.to_string() })
        }

        fn shows_go(&self) -> bool {
            false
        }

        fn of_rest(&self) -> Option<PartKind> {
            self.0.map(|owner| PartKind::Likely { owners: vec![owner.to_owned()] })
        }
    }

    const MIB: u64 = 1 << 20;

    fn region(mib: u64, stack: u32) -> Region {
        Region { size_bytes: mib * MIB, stack: StackIndex(stack), is_reserved: false }
    }

    fn parts(found: &MemoryAccount) -> Vec<(String, u64)> {
        found.parts.iter().map(|part| (part.kind.to_string(), part.bytes / MIB)).collect()
    }

    fn named<const N: usize>(expected: [(&str, u64); N]) -> Vec<(String, u64)> {
        expected.map(|(name, mib)| (name.to_owned(), mib)).to_vec()
    }

    fn blocks(mib: u64) -> Blocks {
        Blocks { bytes: mib * MIB, count: 0 }
    }

    #[test]
    fn a_heap_that_holds_more_than_its_blocks_hides_nothing() {
        let look = MemoryLook {
            total_bytes: 40 * MIB,
            agent_bytes: 5 * MIB,
            data_bytes: MIB,
            heap_bytes: 34 * MIB,
            ..MemoryLook::default()
        };
        let none = BTreeMap::new();
        let found = account(&look, blocks(4), [&none, &none], None, &Plain(None));
        assert_eq!(found.unseen_bytes(), 0);
        let expected = [("written data, bss", 1), ("recorded blocks", 4), ("free in the allocator", 30)];
        assert_eq!(parts(&found), named(expected));
        assert_eq!(found.explained_bytes(), 35 * MIB);
    }

    #[test]
    fn what_is_mapped_belongs_to_who_has_mapped_it_and_the_rest_to_nobody() {
        let look = MemoryLook {
            total_bytes: 31 * MIB,
            heap_bytes: MIB,
            mapped: vec![(0, 20 * MIB, 20 * MIB), (100 * MIB, 110 * MIB, 10 * MIB)],
            ..MemoryLook::default()
        };
        let (now, before) = ([(0, region(5, 1))].into(), [(5 * MIB, region(15, 2))].into());
        let found = account(&look, blocks(5), [&now, &before], None, &Plain(None));
        // Four of the blocks are large: outside of the heap, in mappings without a known stack.
        assert_eq!(found.unseen_bytes(), 26 * MIB);
        assert_eq!(parts(&found), named([("recorded blocks", 5), ("mapped by 2", 15), ("mapped by 1", 5)]));
        assert_eq!(found.explained_bytes(), 25 * MIB);
        let java = Plain(Some("JVM heap"));
        assert_eq!(account(&look, blocks(5), [&now, &before], None, &java).explained_bytes(), 31 * MIB);
    }

    #[test]
    fn what_the_program_takes_by_brk_is_not_free_in_the_allocator() {
        let look = MemoryLook {
            total_bytes: 20 * MIB,
            heap_bytes: 20 * MIB,
            by_brk: vec![(0, 20 * MIB, 20 * MIB)],
            ..MemoryLook::default()
        };
        let (now, none) = ([(4 * MIB, region(12, 1))].into(), BTreeMap::new());
        let found = account(&look, blocks(5), [&now, &none], None, &Plain(None));
        let expected = [("recorded blocks", 5), ("free in the allocator", 3), ("mapped by 1", 12)];
        assert_eq!((parts(&found), found.unseen_bytes()), (named(expected), 12 * MIB));
        // An allocator that is recorded has its blocks there.
        let now = [(4 * MIB, region(12, 9))].into();
        assert_eq!(
            account(&look, blocks(5), [&now, &none], Some(ALLOCATOR_BYTES), &Plain(None)).unseen_bytes(),
            0
        );
    }

    #[test]
    fn shares_of_a_mapping_lose_no_byte() {
        let regions: BTreeMap<u64, Region> = (0..7).map(|at| (at * MIB, region(1, at as u32))).collect();
        let (sums, unclaimed_bytes) = by_stack(&[(0, 7 * MIB, MIB)], [&regions, &BTreeMap::new()]);
        assert_eq!((sums.len(), sums.values().sum::<u64>(), unclaimed_bytes), (7, MIB, 0));
    }

    #[test]
    fn blocks_of_long_ago_do_not_explain_what_somebody_else_has_mapped() {
        let look = MemoryLook {
            total_bytes: 21 * MIB,
            heap_bytes: MIB,
            mapped: vec![(0, 20 * MIB, 20 * MIB)],
            ..MemoryLook::default()
        };
        let (now, none) = ([(0, region(20, 1))].into(), BTreeMap::new());
        let found = account(&look, blocks(50), [&now, &none], None, &Plain(None));
        assert_eq!(found.unseen_bytes(), 20 * MIB);
    }

    #[test]
    fn an_allocator_that_is_recorded_may_keep_what_it_has_mapped() {
        let look = MemoryLook {
            total_bytes: 30 * MIB,
            mapped: vec![(0, 64 * MIB, 20 * MIB), (80 * MIB, 90 * MIB, 10 * MIB)],
            ..MemoryLook::default()
        };
        let (now, none) = ([(80 * MIB, region(10, 9))].into(), BTreeMap::new());
        assert_eq!(
            account(&look, blocks(18), [&now, &none], Some(ALLOCATOR_BYTES), &Plain(None)).unseen_bytes(),
            0
        );
        let few = account(&look, blocks(1), [&now, &none], Some(ALLOCATOR_BYTES), &Plain(None));
        assert_eq!(few.unseen_bytes(), 21 * MIB);
        // Some of its functions have no names.
        let hidden = account(&look, blocks(1), [&now, &none], Some(0), &Plain(None));
        assert_eq!(hidden.unseen_bytes(), 28 * MIB);
    }
}
