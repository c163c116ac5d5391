//! Holds what processes report of their JIT code: `/tmp/perf-PID.map`, `jit-PID.dump`, and objects
//! registered for debuggers. Files are opened when they are first seen: they may be gone when the
//! recording ends, and a container's `/tmp` with them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapr_proc::{Fields, mappings};
use heapr_symbols::{MadeCode, MadeFunction, read_jitdump, read_perf_map};

use crate::recorder::names::made_objects::MadeObjects;
use crate::recorder::names::map_folders::MapFolders;

/// Largest number of processes whose files are held.
const PROCESSES_MAX: usize = 256;
/// Size in bytes of the largest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Names of a process's JIT code.
#[derive(Debug)]
pub struct HeldMadeCode {
    /// Process id, as in the trace.
    pub pid: u32,
    /// Functions that the process reported.
    pub code: Arc<MadeCode>,
}

/// File that lists JIT code, and its size when it was first seen.
#[derive(Debug)]
struct Telling {
    file: File,
    old_bytes: u64,
}

#[derive(Debug, Default)]
struct Process {
    perf_map: Option<Telling>,
    jitdump: Option<Telling>,
    objects: MadeObjects,
    looks: u32,
    close_looks: u32,
    /// Number of the close check at which the file is looked for again.
    next_close_look: u32,
    /// Change counter of the folders when the map was last looked for.
    seen_news: u64,
}

/// JIT code of all processes.
#[derive(Debug, Default)]
pub(crate) struct MadeCodes {
    processes: BTreeMap<u32, Process>,
    folders: MapFolders,
}

impl MadeCodes {
    /// Checks what a process reports.
    pub(crate) fn look(&mut self, pid: u32) {
        if !self.processes.contains_key(&pid) && self.processes.len() >= PROCESSES_MAX {
            return;
        }
        let process = self.processes.entry(pid).or_default();
        process.looks = process.looks.saturating_add(1);
        // Content at the first check may be older than the recording.
        let is_old = process.looks == 1;
        let telling = |file: File| {
            let bytes = file.metadata().map_or(0, |facts| facts.len());
            Telling { file, old_bytes: if is_old { bytes } else { 0 } }
        };
        if process.perf_map.is_none() {
            if is_old {
                self.folders.watch(&folders_of(pid));
            }
            // Without change notifications each check looks for the file.
            let news = self.folders.news();
            let is_due = is_old || news.is_none_or(|news| news != process.seen_news);
            if is_due {
                process.seen_news = news.unwrap_or_default();
                process.perf_map = open_perf_map(pid).map(telling);
            }
        }
        process.objects.look(pid);
    }

    /// Checks what a process reports, and now and then also for what takes longer to find.
    pub(crate) fn look_closely(&mut self, pid: u32) {
        self.look(pid);
        let is_wanted = |process: &&mut Process| process.jitdump.is_none();
        let Some(process) = self.processes.get_mut(&pid).filter(is_wanted) else { return };
        process.close_looks = process.close_looks.saturating_add(1);
        // Long lists of mappings are not read again and again: the longer a process runs, the more
        // rarely.
        if process.close_looks >= process.next_close_look {
            process.next_close_look = process.close_looks + 1 + process.close_looks / 4;
            // Another file system may be mounted there by now.
            if process.perf_map.is_none() {
                self.folders.watch(&folders_of(pid));
                process.seen_news = u64::MAX;
            }
            process.jitdump = open_jitdump(pid).map(|file| {
                let bytes = file.metadata().map_or(0, |facts| facts.len());
                Telling { file, old_bytes: if process.close_looks == 1 { bytes } else { 0 } }
            });
        }
    }

    /// Registers the address of a process's list of registered objects.
    pub(crate) fn note_objects(&mut self, pid: u32, descriptor_avma: u64) {
        if self.processes.contains_key(&pid) || self.processes.len() < PROCESSES_MAX {
            self.processes.entry(pid).or_default().objects.note(descriptor_avma);
        }
    }

    /// Returns everything that was found, after a last check.
    pub(crate) fn finish(mut self) -> Vec<HeldMadeCode> {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.look_closely(pid));
        let codes = self.processes.into_iter().map(|(pid, process)| {
            let read = |telling: Option<Telling>, read: fn(&[u8], u64) -> (Vec<MadeFunction>, usize)| {
                let bytes = telling.map(|telling| (read_whole(telling.file), telling.old_bytes));
                bytes.map_or_else(Default::default, |(bytes, old)| read(&bytes, old))
            };
            // A jitdump and objects know more than a map does.
            let (functions, old) = match read(process.jitdump, read_jitdump) {
                (functions, _) if functions.is_empty() => read(process.perf_map, read_perf_map),
                found => found,
            };
            let objects = process.objects.finish();
            let old = if objects.is_empty() { old } else { 0 };
            let code = MadeCode::new(functions.into_iter().chain(objects).collect(), old);
            HeldMadeCode { pid, code: Arc::new(code) }
        });
        codes.filter(|held| !held.code.is_empty()).collect()
    }
}

/// Folders in which a process may write its map.
fn folders_of(pid: u32) -> [PathBuf; 2] {
    [PathBuf::from(format!("/proc/{pid}/root/tmp")), PathBuf::from("/tmp")]
}

/// Opens the map named by the pid in the process's own namespace and root directory, or by ours.
fn open_perf_map(pid: u32) -> Option<File> {
    let inner = Fields::of_process(pid).ok().and_then(|fields| fields.last_number("NSpid"));
    let in_its_root = inner.map(|inner| PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner}.map")));
    let candidates = [in_its_root, Some(PathBuf::from(format!("/tmp/perf-{pid}.map")))];
    candidates.into_iter().flatten().find_map(|path| open(pid, &path))
}

/// Opens the jitdump, which its writer maps so that others can find it.
fn open_jitdump(pid: u32) -> Option<File> {
    let list = mappings::read_named(pid, "/jit-").ok()?;
    let dump = list.iter().find(|mapping| {
        let name = mapping.name.rsplit('/').next().unwrap_or_default();
        name.starts_with("jit-") && name.ends_with(".dump") && mapping.name.starts_with('/')
    })?;
    let in_its_root = PathBuf::from(format!("/proc/{pid}/root")).join(dump.name.trim_start_matches('/'));
    open(pid, &in_its_root).or_else(|| open(pid, Path::new(&dump.name)))
}

fn open(pid: u32, path: &Path) -> Option<File> {
    // Any user can put a file, a link or a pipe of this name there.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let facts = file.metadata().ok()?;
    let owner = std::fs::metadata(format!("/proc/{pid}")).ok().map(|facts| facts.uid());
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = [0, own].contains(&facts.uid()) || Some(facts.uid()) == owner;
    (facts.is_file() && is_trusted).then_some(file)
}

fn read_whole(file: File) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    if file.metadata().is_ok_and(|facts| facts.len() <= FILE_BYTES_MAX) {
        // A partly read file is still used.
        let _ = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    }
    bytes
}

/// Address within each module of the list of registered objects, if its file has one.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    of_modules: HashMap<heapr_trace::Module, Option<u64>>,
}

impl Descriptors {
    /// Returns the address of the list in a module, by its file.
    pub(crate) fn of(&mut self, module: &heapr_trace::Module, file: Option<&File>) -> Option<u64> {
        use std::os::fd::AsRawFd as _;
        if let Some(&known) = self.of_modules.get(module) {
            return known;
        }
        let path = file.map(|file| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        let found = path.and_then(|path| heapr_symbols::jit_descriptor_svma(&path));
        self.of_modules.insert(module.clone(), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_is_gone_at_the_end_was_held() {
        let pid = std::process::id();
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let mut codes = MadeCodes::default();
        codes.look(pid);
        std::fs::write(&path, "10 10 f\n").unwrap();
        codes.look(pid);
        std::fs::remove_file(&path).unwrap();
        codes.look(pid);
        let held = codes.finish();
        let [HeldMadeCode { pid: found, code }] = &held[..] else { panic!("{held:?}") };
        assert_eq!(*found, pid);
        assert_eq!(code.find(0x18).unwrap().name, "f");
    }
}
