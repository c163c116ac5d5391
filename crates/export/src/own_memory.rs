//! What of a process's own memory is explained, in two lines: whoever prints totals says it.

use heapr_table::quantity::bytes;
use heapr_trace::{MemoryAccount, Trace};

use crate::process_name::ProcessName;

/// Parts that are named, of those that are more than a fiftieth.
const PARTS_SHOWN: usize = 3;

/// How much it was, and what it was: of the process that held most, by its name if there are
/// several.
#[must_use]
pub fn own_memory(trace: &Trace) -> Vec<String> {
    let processes = trace.processes();
    let name = |account: &MemoryAccount| {
        let known = processes.get(account.process.0 as usize).filter(|_| processes.len() > 1)?;
        Some(ProcessName::from(known).to_string())
    };
    own_memory_lines(trace.memory_accounts(), name)
}

fn own_memory_lines(
    accounts: &[MemoryAccount],
    name: impl Fn(&MemoryAccount) -> Option<String>,
) -> Vec<String> {
    let Some(largest) = accounts.iter().max_by_key(|account| account.anonymous_bytes) else {
        return Vec::new();
    };
    let whose = name(largest).map(|name| format!(" in {name}")).unwrap_or_default();
    let all = largest.anonymous_bytes;
    let explained = percent(largest.explained_bytes(), all);
    let mut parts: Vec<(u64, &str)> =
        largest.parts.iter().map(|part| (part.bytes, part.what.as_str())).collect();
    parts.sort_by_key(|(part_bytes, _)| std::cmp::Reverse(*part_bytes));
    let shown = parts.iter().filter(|(part_bytes, _)| *part_bytes >= all / 50).take(PARTS_SHOWN);
    let shown: Vec<String> =
        shown.map(|(part_bytes, what)| format!("{} {what}", percent(*part_bytes, all))).collect();
    let mut lines = vec![format!("{} seen at most{whose}, {explained} of it explained", bytes(all))];
    lines.extend((!shown.is_empty()).then(|| shown.join(", ")));
    lines
}

/// A share, rounded down: what is not whole is not 100 %.
fn percent(part: u64, all: u64) -> String {
    format!("{} %", u128::from(part) * 100 / u128::from(all.max(1)))
}

#[cfg(test)]
mod tests {
    use heapr_trace::MemoryPart;

    use super::*;

    #[test]
    fn the_largest_process_is_told_with_its_largest_parts() {
        let part = |what: &str, bytes| MemoryPart { what: what.to_owned(), bytes, ..MemoryPart::default() };
        let small = MemoryAccount { anonymous_bytes: 1 << 20, ..MemoryAccount::default() };
        let parts = vec![part("stacks", 1 << 10), part("recorded blocks", 1 << 20), part("free", 6 << 20)];
        let large = MemoryAccount { anonymous_bytes: 8 << 20, parts, ..small.clone() };
        let lines = own_memory_lines(&[small, large], |_| None);
        assert_eq!(lines, ["8.00 MiB seen at most, 87 % of it explained", "75 % free, 12 % recorded blocks"]);
        assert!(own_memory_lines(&[], |_| None).is_empty());
        assert_eq!(percent(999, 1000), "99 %");
        assert_eq!(percent(0, 0), "0 %");
    }
}
