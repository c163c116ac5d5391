//! Remarks on processes that were attached to or let go.

use heapr_inject::AttachReport;

use crate::attach::{STAYS, left_notice};
use crate::recorder::memory::mebibytes;
use crate::{Error, ProcessFacts};

/// Largest number of children that a remark names.
const CHILDREN_NAMED_MAX: usize = 5;

/// Remark on children that are not traced.
pub(super) fn children_remark(pid: u32, children: &[u32]) -> Option<String> {
    let name = |pid: u32| ProcessFacts::of(pid).map(|facts| facts.name().to_owned()).unwrap_or_default();
    let named = |&child: &u32| format!("{child} {}", name(child));
    let mut list: Vec<String> = children.iter().take(CHILDREN_NAMED_MAX).map(named).collect();
    list.extend((children.len() > CHILDREN_NAMED_MAX).then(|| "…".to_owned()));
    let what = match children.len() {
        0 => return None,
        1 => "a child process that runs and is".to_owned(),
        count => format!("{count} child processes that run and are"),
    };
    Some(format!("process {pid} has {what} not traced ({}): --tree takes them too", list.join(", ")))
}

/// Remark on the result of attaching to a child.
pub(super) fn child_remark(pid: u32, child: u32, outcome: Result<String, Error>) -> String {
    match outcome {
        Ok(remark) => format!("process {child}, a child of {pid}, is traced: {remark}"),
        Err(error) => format!("process {child}, a child of {pid}, is not traced: {error}"),
    }
}

/// Remark on a detach that left the agent mapped.
pub(super) fn left_remark(pid: u32, bytes_left: u64) -> String {
    format!("process {pid} is let go; {}", left_notice(bytes_left))
}

/// Remark on an attach.
pub(super) fn attach_remark(report: &AttachReport) -> String {
    if report.is_from_outside {
        return "nothing can be loaded into it: Go's own account of its heap is read from outside".to_owned();
    }
    let plural = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut remark = format!(
        "it stood still for {:.1} ms ({}, {})",
        report.pause.as_secs_f64() * 1e3,
        plural(report.thread_count as u64, "thread"),
        plural(report.module_count as u64, "module")
    );
    match &report.heap_unread {
        Some(reason) => remark += &format!("; what it had allocated before is not known: {reason}"),
        None => remark += &format!("; it had allocated {} before", plural(report.blocks_before, "block")),
    }
    if !report.other_heaps.is_empty() {
        let s = if report.other_heaps.len() == 1 { "" } else { "s" };
        remark += &format!("; what its heap{s} {} held before is not known", report.other_heaps.join(", "));
    }
    if report.orphan_bytes_left > 0 {
        let left = mebibytes(report.orphan_bytes_left);
        remark += &format!("; of a recording that was killed {left} stay mapped, without use: {STAYS}");
    }
    for (function, reason) in &report.not_hooked {
        remark += &format!("; {function} is not recorded: {reason}");
    }
    remark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_attach_met_is_said_in_one_line() {
        let mut report =
            AttachReport { thread_count: 1, module_count: 12, blocks_before: 1, ..AttachReport::default() };
        let remark = attach_remark(&report);
        assert!(remark.ends_with("(1 thread, 12 modules); it had allocated 1 block before"), "{remark}");
        report.orphan_bytes_left = 93 << 20;
        report.heap_unread = Some("its heap is damaged".to_owned());
        report.other_heaps = vec!["php".to_owned(), "python".to_owned()];
        let remark = attach_remark(&report);
        assert!(
            remark.contains("what it had allocated before is not known: its heap is damaged"),
            "{remark}"
        );
        assert!(remark.contains("; what its heaps php, python held before is not known"), "{remark}");
        assert!(remark.contains("of a recording that was killed 93.0 MiB stay mapped"), "{remark}");
    }

    #[test]
    fn children_beyond_the_first_are_counted() {
        assert_eq!(children_remark(1, &[]), None);
        // No process has such an id, so no name appears.
        let remark = children_remark(7, &[i32::MAX as u32; 6]).unwrap();
        assert!(remark.starts_with("process 7 has 6 child processes") && remark.contains(", …)"), "{remark}");
    }
}
