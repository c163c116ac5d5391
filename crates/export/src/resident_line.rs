//! Line about the largest resident set of a recording, and its parts.

use std::cmp::Reverse;

use heapr_query::{OwnCode, SymbolSource};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, bytes_within};
use heapr_trace::{MemoryAccount, PartKind, ProcessIndex, Trace};

use crate::own_memory::{Mappers, OwnMemoryIntervals, mappers_by_name};
use crate::process_name::ProcessName;

/// Parts below this share of the sum (one in so many) are added up as `other`.
const SHOWN_SHARE: u64 = 50;
/// Words for memory without an explanation.
const UNKNOWN: &str = "unknown";

/// Resident memory of a process, without heapr's own.
#[derive(Debug, Default)]
struct Resident {
    /// Amount, half of its 95 % interval, and name of each part.
    parts: Vec<(u64, u64, String)>,
    /// Shared memory, which includes heapr's buffers.
    shared_bytes: u64,
}

/// Returns the process with the largest resident set. `None` if the recording has no counters.
fn largest_process(trace: &Trace) -> Option<ProcessIndex> {
    Some(trace.resident_samples().iter().max_by_key(|sample| sample.rss_bytes())?.process)
}

/// Line about the largest resident set: the sum without heapr's own memory, then its parts. `most`
/// has words for the largest part of recorded blocks, as `largest stack: f  a.py:3`, with their
/// process.
#[must_use]
pub fn resident_line(
    trace: &Trace,
    own: &OwnCode,
    symbols: &mut dyn SymbolSource,
    most: Option<(ProcessIndex, &str)>,
) -> Option<String> {
    let process = largest_process(trace)?;
    let samples = trace.resident_samples().iter().filter(|sample| sample.process == process);
    let sample = samples.max_by_key(|sample| sample.rss_bytes())?;
    let accounts = trace.memory_accounts().iter().filter(|account| account.process == process);
    let account = accounts.max_by_key(|account| account.anonymous_bytes);
    let mut resident = match account.filter(|account| !account.parts.is_empty()) {
        Some(account) => {
            let mappers = mappers_by_name(trace, own, symbols);
            of_account(account, &mappers, &OwnMemoryIntervals::of(trace))
        }
        None => {
            let agent_bytes = account.map_or(0, |account| account.agent_bytes);
            let own_bytes = sample.anonymous_bytes.saturating_sub(agent_bytes);
            let name = "heap, data and stacks, not looked at".to_owned();
            Resident { parts: vec![(own_bytes, 0, name)], shared_bytes: 0 }
        }
    };
    resident.parts.push((sample.file_bytes, 0, "files".to_owned()));
    resident.shared_bytes = sample.shared_memory_bytes;
    if let Some((_, most)) = most.filter(|(own, _)| *own == process) {
        let blocks = PartKind::RecordedBlocks.to_string();
        resident.parts.iter_mut().filter(|(.., name)| *name == blocks).for_each(|(.., name)| {
            *name = format!("{blocks} ({most})");
        });
    }
    let whose = trace.processes().get(process.0 as usize).filter(|_| trace.processes().len() > 1);
    Some(resident.text(whose.map(|known| ProcessName::from(known).to_string()).as_deref()))
}

/// Parts of an account, with what it does not explain.
fn of_account(account: &MemoryAccount, mappers: &Mappers, intervals: &OwnMemoryIntervals) -> Resident {
    let of_part = |part: &heapr_trace::MemoryPart| {
        let by = mappers.get(&part.stack).map(|name| format!(" in {name}")).unwrap_or_default();
        (part.bytes, intervals.plus_minus(account, part), format!("{}{by}", part.kind))
    };
    let mut parts: Vec<_> = account.parts.iter().map(of_part).collect();
    let unknown_bytes = account.anonymous_bytes.saturating_sub(account.explained_bytes());
    parts.push((unknown_bytes, 0, UNKNOWN.to_owned()));
    Resident { parts, shared_bytes: 0 }
}

impl Resident {
    fn text(mut self, whose: Option<&str>) -> String {
        let all = self.parts.iter().fold(0_u64, |sum, (bytes, ..)| sum.saturating_add(*bytes));
        self.parts.sort_rows_by_key(|(bytes, ..)| Reverse(*bytes));
        let is_large = |part: &(u64, u64, String)| part.0 > 0 && part.0 >= all / SHOWN_SHARE;
        let (large, small): (Vec<_>, Vec<_>) = self.parts.into_iter().partition(is_large);
        let mut told: Vec<String> = large
            .iter()
            .map(|(bytes, plus_minus, name)| format!("{} {name}", bytes_within(*bytes, *plus_minus)))
            .collect();
        let other = small.iter().fold(0_u64, |sum, (bytes, ..)| sum.saturating_add(*bytes));
        told.extend((other > 0).then(|| format!("{} other", bytes(other))));
        let whose = whose.map(|name| format!(" in {name}")).unwrap_or_default();
        let beside = match self.shared_bytes {
            0 => String::new(),
            shared => format!("; beside it {} shared memory, with heapr's buffers", bytes(shared)),
        };
        format!("{} at most{whose}: {}{beside}", bytes(all), told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use heapr_trace::{MemoryPart, StackIndex};

    use super::*;

    #[test]
    fn the_parts_are_told_by_size_and_add_up() {
        let part = |kind, bytes| MemoryPart { kind, bytes, stack: StackIndex::EMPTY, is_unseen: false };
        let parts = vec![
            part(PartKind::ThreadStacks, 64 << 10),
            part(PartKind::RecordedBlocks, 4 << 20),
            part(PartKind::FreeInAllocator, 8 << 20),
        ];
        let account = MemoryAccount { anonymous_bytes: 14 << 20, parts, ..MemoryAccount::default() };
        let mut resident = of_account(&account, &Mappers::new(), &OwnMemoryIntervals::default());
        resident.parts.push((6 << 20, 0, "files".to_owned()));
        resident.shared_bytes = 1 << 20;
        assert_eq!(
            resident.text(Some("a (7)")),
            "20.0 MiB at most in a (7): 8.00 MiB free in the allocator, 6.00 MiB files, 4.00 MiB recorded blocks, \
             1.94 MiB unknown, 64.0 KiB other; beside it 1.00 MiB shared memory, with heapr's buffers"
        );
        let only = Resident { parts: vec![(3 << 20, 1 << 20, "files".to_owned())], shared_bytes: 0 };
        assert_eq!(only.text(None), "3.00 MiB at most: 3.00 MiB ± 1.00 MiB files");
        assert_eq!(Resident::default().text(None), "0 B at most: ");
    }
}
