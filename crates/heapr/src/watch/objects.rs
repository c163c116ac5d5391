//! Objects of CPython, read while the group has room for a copy of the process.
//!
//! Samples leave CPython's small objects out, so that only the objects themselves tell who holds
//! them. The process stands still for milliseconds. What it writes while the copy is read takes
//! memory of its group a second time. The copy is taken only if the whole process fits twice.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use heapr_incident::{Incident, unix_ns};
use heapr_proc::Fields;
use serde_json::Value;

/// Class of resident memory that the objects are in.
const CLASS: &str = "python_arenas";
/// Least resident bytes of a process whose objects are read.
const BYTES_MIN: u64 = 12 << 20;
/// Growth of the resident set, in hundredths, after which the objects are read again.
const GROWTH_PERCENT: u64 = 40;
/// Room that must be left, as a multiple of the process's resident bytes in quarters.
const ROOM_QUARTERS: u64 = 5;

/// Beginning and ending of a snapshot's name; the process id is between them.
const STEM: &str = "objects-";
const ENDING: &str = ".heapsnapshot";

/// Removes the snapshots that a killed watcher has left in its folder.
pub(super) fn remove_left(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(STEM)?.strip_suffix(ENDING));
        if pid.is_some_and(|pid| pid.parse::<u32>().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Snapshot of a process's objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    taking: Option<Child>,
    path: PathBuf,
    /// Resident bytes at the last snapshot.
    rss_bytes: u64,
    taken_unix_ns: u64,
}

impl Objects {
    /// Whether a snapshot is being taken.
    pub(super) fn is_taking(&mut self) -> bool {
        self.taking.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Begins to take a snapshot of a CPython process that has grown, if there is room.
    /// `left_bytes`: memory that the group has left; `None`: the group has no limit.
    pub(super) fn take_if_due(&mut self, folder: &Path, pid: u32, rss_bytes: u64, left_bytes: Option<u64>) {
        let grown_bytes = self.rss_bytes.saturating_add(self.rss_bytes / 100 * GROWTH_PERCENT).max(BYTES_MIN);
        if self.is_taking() || rss_bytes < grown_bytes {
            return;
        }
        let of_machine = Fields::of_machine().bytes("MemAvailable").unwrap_or(0);
        let left_bytes = left_bytes.map_or(of_machine, |left| left.min(of_machine));
        if left_bytes < rss_bytes / 4 * ROOM_QUARTERS {
            return;
        }
        self.path = folder.join(format!("{STEM}{pid}{ENDING}"));
        let mut command = Command::new("/proc/self/exe");
        command.args(["snapshot", "take", &pid.to_string(), "--heap", "python", "--quiet", "--force", "-o"]);
        command.arg(&self.path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A refusal is no event: the process may be of a version that cannot be read.
        self.taking = command.spawn().ok();
        if let Some(child) = &self.taking {
            // It inherits the score of the watcher, and is to be killed before a watched process.
            let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "900");
        }
        (self.rss_bytes, self.taken_unix_ns) = (rss_bytes, unix_ns());
    }

    /// Names the largest owner of the objects in an incident.
    pub(super) fn tell(&mut self, incident: &mut Incident) {
        let Some(child) = &mut self.taking else { return };
        if !child.wait().is_ok_and(|status| status.success()) {
            return;
        }
        let Some((name, bytes)) = largest_owner(&self.path) else { return };
        let label = heapr_resident::class_label(CLASS);
        if let Some(holder) = incident.holders.iter_mut().find(|holder| holder.name == label) {
            holder.held_by = Some(name.clone());
        }
        let when = heapr_incident::clock_text(self.taken_unix_ns, incident.time_unix_ns);
        let amount = heapr_table::quantity::bytes(bytes);
        incident
            .cause
            .evidence
            .push(format!("the objects were read at {when}: {name} held {amount} of them"));
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        if let Some(child) = &mut self.taking {
            let _ = child.wait();
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Largest owner of objects in a snapshot, and the bytes that it retains.
fn largest_owner(path: &Path) -> Option<(String, u64)> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["snapshot", "suspects", "--format", "json"]).arg(path).stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    let owner = answer["owners"].as_array()?.first()?;
    Some((owner["name"].as_str()?.to_owned(), owner["retained_bytes"].as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_that_were_left_are_removed_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["objects-12.heapsnapshot", "objects-mine.heapsnapshot", "incident-000001.json"];
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
        remove_left(folder.path());
        assert_eq!(names.map(|name| folder.path().join(name).exists()), [false, true, true]);
    }
}
