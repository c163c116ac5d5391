//! `/tmp/perf-PID.map`, in which a process names code that it makes while it runs: held from the
//! time when it is seen. It may be gone when the recording ends, and a container's `/tmp` with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use heapr_proc::Fields;

/// Most processes whose maps are held.
const PROCESSES_MAX: usize = 256;

/// The names of a process's code.
#[derive(Debug)]
pub struct HeldPerfMap {
    /// Of which process, as the trace has it.
    pub pid: u32,
    /// The file, as it was opened.
    pub file: File,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PerfMaps {
    held: BTreeMap<u32, File>,
    missing: BTreeSet<u32>,
}

impl PerfMaps {
    /// Holds the map of a process, if it has one by now.
    pub(crate) fn look(&mut self, pid: u32) {
        if self.held.contains_key(&pid) || self.held.len() >= PROCESSES_MAX {
            return;
        }
        match open(pid) {
            Some(file) => {
                self.held.insert(pid, file);
                self.missing.remove(&pid);
            }
            None if self.missing.len() < PROCESSES_MAX => {
                self.missing.insert(pid);
            }
            None => {}
        }
    }

    /// All that were found, after a last look.
    pub(crate) fn finish(mut self) -> Vec<HeldPerfMap> {
        for pid in std::mem::take(&mut self.missing) {
            self.look(pid);
        }
        self.held.into_iter().map(|(pid, file)| HeldPerfMap { pid, file }).collect()
    }
}

/// As its process calls itself, in its own root directory; or as we do.
fn open(pid: u32) -> Option<File> {
    let inner = Fields::of_process(pid).ok().and_then(|fields| fields.last_number("NSpid"));
    let in_its_root = inner.map(|inner| PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner}.map")));
    let owner = std::fs::metadata(format!("/proc/{pid}")).ok().map(|facts| facts.uid());
    let own = rustix::process::geteuid().as_raw();
    let candidates = [in_its_root, Some(PathBuf::from(format!("/tmp/perf-{pid}.map")))];
    candidates.into_iter().flatten().find_map(|path| {
        // Anyone can put a file, a link or a pipe of this name there.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = flags.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let facts = file.metadata().ok()?;
        let is_trusted = [0, own].contains(&facts.uid()) || Some(facts.uid()) == owner;
        (facts.is_file() && is_trusted).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_map_that_is_gone_at_the_end_was_held() {
        let pid = std::process::id();
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let mut maps = PerfMaps::default();
        maps.look(pid);
        std::fs::write(&path, "10 10 f\n").unwrap();
        maps.look(pid);
        std::fs::remove_file(&path).unwrap();
        maps.look(pid);
        let held = maps.finish();
        let [HeldPerfMap { pid: found, file }] = &held[..] else { panic!("{held:?}") };
        let mut text = String::new();
        (&*file).read_to_string(&mut text).unwrap();
        assert_eq!((*found, text.as_str()), (pid, "10 10 f\n"));
    }
}
