//! Check before a snapshot: its cost, and whether the process would survive it.

use std::path::Path;

use anyhow::bail;
use heapr_inspector::{
    Danger, Estimate, HeapFacts, MemoryLimit, dangers, estimate, memory_room, resident_bytes,
};

use heapr_table::quantity;

/// Wishes of the user about costs and dangers of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consent {
    /// A snapshot is taken even if it would likely end the process.
    pub(crate) may_risk: bool,
    /// The costs are not told.
    pub(crate) is_quiet: bool,
}

/// Prints the cost on standard error. Refuses a snapshot that would likely end the process, unless
/// the user consents.
pub(crate) fn check(
    pid: u32,
    what: &str,
    facts: HeapFacts,
    directories: &[&Path],
    consent: Consent,
) -> anyhow::Result<Estimate> {
    let estimate = estimate(facts);
    let room = memory_room(pid);
    let disks = directories.iter().filter_map(|&directory| rustix::fs::statvfs(directory).ok());
    let disk_free_bytes = disks.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)).min();
    if !consent.is_quiet {
        tell!(
            "heapr: {what}: {} of heap in use, {} resident; the thread will stand still for about {}, and take {} to {} more \
             ({} free); the file: up to {}",
            quantity::bytes(facts.usage.used_bytes),
            quantity::bytes(resident_bytes(pid)),
            seconds(estimate.pause),
            quantity::bytes(estimate.extra_bytes),
            quantity::bytes(estimate.extra_max_bytes),
            quantity::bytes(room.free_bytes),
            quantity::bytes(estimate.file_bytes),
        );
    }
    let dangers: Vec<String> = dangers(estimate, &room, disk_free_bytes).iter().map(told).collect();
    if !dangers.is_empty() {
        if !consent.may_risk {
            bail!(
                "{what}: {}; --at-risk takes it nevertheless, `heapr node sample {pid}` costs next to nothing",
                dangers.join("; ")
            );
        }
        warn!("{what}: {}", dangers.join("; "));
    }
    Ok(estimate)
}

/// Formats a duration, as in `2.7 s` or `1 m 20 s`.
pub(crate) fn seconds(duration: std::time::Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    if tenths < 600 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = tenths.div_ceil(10);
    format!("{} m {:02} s", seconds / 60, seconds % 60)
}

fn told(danger: &Danger) -> String {
    match danger {
        Danger::Memory { extra_bytes, free_bytes, limited_by } => format!(
            "the snapshot will likely take {} of memory, but {} has only {} left, so the process would likely be killed",
            quantity::bytes(*extra_bytes),
            match limited_by {
                MemoryLimit::Machine => "the machine".to_owned(),
                MemoryLimit::ControlGroup { path, limit_bytes } =>
                    format!("its control group {path} (limit {})", quantity::bytes(*limit_bytes)),
            },
            quantity::bytes(*free_bytes)
        ),
        Danger::Disk { file_bytes, free_bytes } => format!(
            "the file may have {}, but the disk has only {} left",
            quantity::bytes(*file_bytes),
            quantity::bytes(*free_bytes)
        ),
        _ => "something else speaks against it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use heapr_inspector::HeapUsage;

    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(seconds(Duration::from_millis(2_640)), "2.7 s");
        assert_eq!(seconds(Duration::from_millis(79_950)), "1 m 20 s");
        assert_eq!(seconds(Duration::ZERO), "0.0 s");
    }

    #[test]
    fn a_refusal_says_what_would_happen_and_what_to_do() {
        let usage = HeapUsage { used_bytes: 1 << 50, total_bytes: 1 << 50 };
        let facts = HeapFacts { usage, shape: None, has_numeric_values: false, node_major: None };
        let check = |may_risk| {
            let consent = Consent { may_risk, is_quiet: true };
            check(std::process::id(), "process 7", facts, &[Path::new(".")], consent)
        };
        let error = check(false).unwrap_err().to_string();
        assert!(error.contains("would likely be killed") && error.contains("--at-risk"), "{error}");
        assert!(check(true).is_ok());
    }
}
