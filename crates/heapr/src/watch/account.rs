//! Accounts of resident memory, read while a process is near its limit.

use heapr_incident::{Account, AccountLine, unix_ns};

use crate::explain::class_sums;

/// Reads the account of a process, without stopping it; `None` if it has ended.
pub(super) fn of_process(pid: u32) -> Option<Account> {
    let sums = class_sums(pid).ok()?;
    let mut lines: Vec<AccountLine> = sums
        .into_iter()
        .map(|(class, label, bytes)| AccountLine { class: class.to_owned(), label: label.to_owned(), bytes })
        .collect();
    lines.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.class.cmp(&other.class)));
    let rss_bytes = lines.iter().map(|line| line.bytes).sum();
    (rss_bytes > 0).then(|| Account { pid, read_unix_ns: unix_ns(), rss_bytes, lines })
}
