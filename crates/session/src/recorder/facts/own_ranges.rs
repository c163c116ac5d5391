//! Mappings that heapr has made in a recorded process.

use std::collections::BTreeSet;

use heapr_glibc_heap::HeapMemory as _;
use heapr_inject::StoppedProcess;
use heapr_proc::PageMap;
use heapr_proc::page_bytes;
use heapr_proc::smaps::MappingPages;
use heapr_ring::mappings::MAPPINGS_MAX;

/// Start and end of each mapping.
pub(crate) type Ranges = BTreeSet<(u64, u64)>;

/// Agent's mappings in a process, and their resident size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AgentMemory {
    pub(crate) mapping_count: u64,
    pub(crate) mapped_bytes: u64,
    /// Resident bytes; `None` if the kernel does not say.
    pub(crate) resident_bytes: Option<u64>,
}

impl AgentMemory {
    /// Reads the list of mappings that the agent keeps at `list_avma`. `None`: it cannot be read.
    pub(crate) fn of(pid: u32, list_avma: u64) -> Option<Self> {
        let ranges = listed(&StoppedProcess::of(pid), list_avma);
        if ranges.is_empty() {
            return None;
        }
        let mapped_bytes = ranges.iter().map(|(start, end)| end - start).sum();
        let resident_bytes = PageMap::of_process(pid)
            .ok()
            .and_then(|pages| ranges.iter().map(|&range| resident_bytes(&pages, range)).sum::<Option<u64>>());
        Some(Self { mapping_count: ranges.len() as u64, mapped_bytes, resident_bytes })
    }
}

fn resident_bytes(pages: &PageMap, (start_avma, end_avma): (u64, u64)) -> Option<u64> {
    let count = (end_avma - start_avma).div_ceil(page_bytes()) as usize;
    let states = pages.pages(start_avma, count)?;
    // The shared page of zeros is not counted.
    let is_counted = |page: &&heapr_proc::PageState| {
        page.is_swapped() || page.is_present() && (page.is_exclusive() || page.is_of_file())
    };
    Some(states.iter().filter(is_counted).count() as u64 * page_bytes())
}

/// Reads the agent's list of mappings: start and end.
pub(crate) fn listed(memory: &StoppedProcess, list_avma: u64) -> Ranges {
    const ENTRY_BYTES: usize = 16;
    let mut bytes = vec![0; MAPPINGS_MAX * ENTRY_BYTES];
    if list_avma == 0 || memory.read(list_avma, &mut bytes) != bytes.len() {
        return Ranges::new();
    }
    let entries = bytes.as_chunks::<8>().0.as_chunks::<2>().0.iter();
    let range = |[start, size]: &[[u8; 8]; 2]| {
        let (start, size) = (u64::from_le_bytes(*start), u64::from_le_bytes(*size));
        (start, start.saturating_add(size))
    };
    entries.map(range).filter(|(start, end)| *start != 0 && start < end).collect()
}

/// Whether the loader has loaded the agent from its file.
pub(crate) fn has_agent_file(found: &[MappingPages]) -> bool {
    found.iter().any(|found| found.mapping.inode != 0 && found.mapping.name.contains("/heapr-agent-"))
}

/// Adds the code and data of an injected agent, which have no file in the process.
pub(crate) fn of_attached(pid: u32, mut listed: Ranges) -> Ranges {
    listed.extend(heapr_inject::agent_memory(pid).unwrap_or_default());
    listed
}

/// Extends ranges to the mappings that begin in them. The kernel merges adjacent mappings, and the
/// agent's list has at most [`MAPPINGS_MAX`]: what follows one of the agent's mappings is the
/// agent's, too.
pub(crate) fn of_whole_mappings(ranges: &Ranges, found: &[MappingPages]) -> Ranges {
    let holds = |range: &(u64, u64), start_avma: u64| (range.0..range.1).contains(&start_avma);
    let begins_in_one = |start_avma: u64| {
        let before = ranges.range(..=(start_avma, u64::MAX)).next_back();
        before.is_some_and(|range| holds(range, start_avma))
    };
    let begins = found.iter().map(|found| (found.mapping.start_avma, found.mapping.end_avma));
    let whole: Ranges = begins.filter(|&(start_avma, _)| begins_in_one(start_avma)).collect();
    let is_in_whole = |&(start_avma, _): &(u64, u64)| {
        let before = whole.range(..=(start_avma, u64::MAX)).next_back();
        before.is_some_and(|range| holds(range, start_avma))
    };
    let others = ranges.iter().copied().filter(|range| !is_in_whole(range));
    others.chain(whole.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use heapr_proc::smaps;

    use super::*;

    #[test]
    fn a_mapping_that_begins_with_one_of_the_agents_is_the_agents() {
        let text = "\
            700000000000-700000004000 rw-p 00000000 00:00 0\n\
            700000010000-700000014000 rw-p 00000000 00:00 0\n";
        let found = smaps::parse(text.as_bytes()).unwrap();
        let listed = Ranges::from([
            (0x7000_0000_0000, 0x7000_0000_1000),
            (0x7000_0000_2000, 0x7000_0000_3000),
            (0x7000_0001_2000, 0x7000_0001_3000),
        ]);
        // The second mapping begins with memory of the program.
        let whole = [(0x7000_0000_0000, 0x7000_0000_4000), (0x7000_0001_2000, 0x7000_0001_3000)];
        assert_eq!(of_whole_mappings(&listed, &found), Ranges::from(whole));
    }
}
