//! Holds the files of modules open from the time when a module is seen. A library may be deleted or
//! replaced once it is loaded, and a program rebuilt while it runs. A path in a container may lead
//! to another file, or to no file, in our namespace.
//!
//! At the end the files that their paths no longer lead to are returned, so that names are read
//! from them. A file that was deleted before it was seen is replaced by an image of the mapped
//! module. The symbols that the loader uses are in that image.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use heapr_proc::mappings;
use heapr_trace::Module;
use rustix::process::{Resource, getrlimit};

use crate::recorder::names::made_code::{Descriptors, HeldMadeCode, MadeCodes};
use crate::recorder::names::module_image;

/// Largest number of files held open, if the limit of descriptors allows.
const FILES_MAX: usize = 1024;

/// Module whose path does not lead to its file.
#[derive(Debug)]
pub struct HeldModule {
    /// Path as the trace names it.
    pub path: String,
    /// GNU build-id; empty without one.
    pub build_id: Vec<u8>,
    /// File of the module, or an image of its mappings.
    pub file: File,
}

/// Module as it was seen in a process.
pub(crate) struct SeenModule<'a> {
    pub(crate) pid: u32,
    /// Bytes of the path as the process sees it.
    pub(crate) path: &'a [u8],
    pub(crate) start_avma: u64,
    pub(crate) bias_avma: u64,
    pub(crate) is_main: bool,
    /// True if the process may have loaded the module long ago.
    pub(crate) is_old: bool,
}

#[derive(Debug)]
struct Held {
    module: Module,
    /// Path of the file in our namespace.
    path: PathBuf,
    file: File,
}

/// Module files held open, and the JIT code that processes report.
#[derive(Debug, Default)]
pub(crate) struct ModuleFiles {
    seen: HashSet<Module>,
    held: Vec<Held>,
    made_codes: MadeCodes,
    descriptors: Descriptors,
    most: usize,
    /// Time of creation, in seconds since 1970. A file changed later may not be the mapped one.
    since_unix_s: i64,
}

impl ModuleFiles {
    /// Begins to hold files.
    pub(crate) fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // The recorder needs descriptors for other things, too.
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
        let most = usize::try_from(limit).unwrap_or(FILES_MAX).min(FILES_MAX);
        Self {
            seen: HashSet::new(),
            held: Vec::new(),
            made_codes: MadeCodes::default(),
            descriptors: Descriptors::default(),
            most,
            since_unix_s: since_1970.as_secs().cast_signed(),
        }
    }

    /// Opens the file of a module that is seen for the first time.
    pub(crate) fn see(&mut self, module: &Module, seen: &SeenModule<'_>) {
        self.hold(module, seen);
        let held = self.held.iter().find(|held| held.module == *module);
        if let Some(svma) = self.descriptors.of(module, held.map(|held| &held.file)) {
            self.made_codes.note_objects(seen.pid, seen.bias_avma.wrapping_add(svma));
        }
        self.made_codes.look(seen.pid);
    }

    fn hold(&mut self, module: &Module, seen: &SeenModule<'_>) {
        if self.held.len() >= self.most || self.seen.contains(module) {
            return;
        }
        self.seen.insert(module.clone());
        let path = PathBuf::from(OsStr::from_bytes(seen.path));
        if let Some(file) = self.file(&path, &module.build_id, seen) {
            self.held.push(Held { module: module.clone(), path, file });
        }
    }

    fn file(&self, path: &Path, build_id: &[u8], seen: &SeenModule<'_>) -> Option<File> {
        let by_path = [Path::new(&format!("/proc/{}/root", seen.pid)), Path::new("/")]
            .into_iter()
            .filter_map(|root| open_regular(&root.join(path.strip_prefix("/").ok()?)))
            .find(|(_, facts)| self.is_unchanged(facts, seen));
        if let Some((file, _)) = by_path {
            return Some(file);
        }
        // The file at the path may be another one by now: the process's mappings decide. If the
        // process has ended, only the path is left.
        let list = mappings::read(seen.pid).unwrap_or_default();
        let Some(mapped) = mappings::find(&list, seen.start_avma) else {
            return open_regular(path).map(|(file, _)| file).filter(|_| !seen.is_old && path.is_absolute());
        };
        let is_deleted = mapped.name.ends_with(" (deleted)");
        let is_mapped = |facts: &Metadata| mapped.inode != 0 && facts.ino() == mapped.inode;
        let process = PathBuf::from(format!("/proc/{}", seen.pid));
        let range = format!("map_files/{:x}-{:x}", mapped.start_avma, mapped.end_avma);
        let in_its_root = path.strip_prefix("/").ok().map(|path| process.join("root").join(path));
        // On some file systems inode numbers differ between the two views.
        if let Some((file, _)) = in_its_root.as_deref().filter(|_| !is_deleted).and_then(open_regular) {
            return Some(file);
        }
        let candidates = [
            in_its_root,
            Some(process.join(range)),
            seen.is_main.then(|| process.join("exe")),
            path.is_absolute().then(|| path.to_owned()),
        ];
        let file = candidates
            .iter()
            .flatten()
            .filter_map(|candidate| open_regular(candidate))
            .find_map(|(file, facts)| is_mapped(&facts).then_some(file));
        // Another library may be mapped there by now.
        let is_it = |image: &File| {
            let path = format!("/proc/self/fd/{}", image.as_raw_fd());
            build_id.is_empty()
                || heapr_symbols::build_id_of(Path::new(&path)).is_some_and(|id| id == build_id)
        };
        file.or_else(|| module_image::of_process(seen.pid, seen.start_avma, seen.bias_avma).filter(is_it))
    }

    /// Whether a file is certainly the loaded one: it was last changed before the process began.
    fn is_unchanged(&self, facts: &Metadata, seen: &SeenModule<'_>) -> bool {
        !seen.is_old && facts.ctime() < self.since_unix_s
    }

    /// Checks for JIT code that a process has reported since.
    pub(crate) fn look_for_made_code(&mut self, pid: u32) {
        self.made_codes.look_closely(pid);
    }

    /// Takes the names of JIT code.
    pub(crate) fn take_made_code(&mut self) -> Vec<HeldMadeCode> {
        std::mem::take(&mut self.made_codes).finish()
    }

    /// Returns the modules whose paths, as the trace has them, do not lead to their files.
    pub(crate) fn finish(self) -> Vec<HeldModule> {
        let is_elsewhere = |held: &Held| {
            let identity =
                |facts: Metadata| (facts.dev(), facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec());
            let now = std::fs::metadata(&held.path).ok().map(identity);
            held.path.as_os_str().to_str() != Some(&held.module.path)
                || now != held.file.metadata().ok().map(identity)
        };
        let elsewhere = self.held.into_iter().filter(is_elsewhere);
        elsewhere
            .map(|held| HeldModule {
                path: held.module.path,
                build_id: held.module.build_id,
                file: held.file,
            })
            .collect()
    }
}

/// Returns the absolute path of a module that was opened by a path relative to the working
/// directory.
pub(crate) fn absolute(pid: u32, path: Vec<u8>, start_avma: u64) -> Vec<u8> {
    let list = mappings::read(pid).unwrap_or_default();
    let mapped = mappings::find(&list, start_avma).map(|mapping| mapping.name.as_str());
    let mapped = mapped.map(|name| name.strip_suffix(" (deleted)").unwrap_or(name));
    // Names that are not UTF-8 are damaged in the list, and another library may be mapped there by
    // now.
    let file_name = Path::new(OsStr::from_bytes(&path)).file_name();
    let is_it = |name: &&str| name.starts_with('/') && Path::new(name).file_name() == file_name;
    if let Some(name) = mapped.filter(is_it).filter(|name| !name.contains(char::REPLACEMENT_CHARACTER)) {
        return name.as_bytes().to_vec();
    }
    match std::fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => folder.join(OsStr::from_bytes(&path)).into_os_string().into_encoded_bytes(),
        Err(_) => path,
    }
}

/// Opens a regular ELF file; opening a pipe could block for ever.
fn open_regular(path: &Path) -> Option<(File, Metadata)> {
    const O_NONBLOCK: i32 = 0o4000;
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    let facts = file.metadata().ok().filter(Metadata::is_file)?;
    let mut magic = [0; 4];
    (file.read_exact_at(&mut magic, 0).is_ok() && magic == *b"\x7fELF").then_some((file, facts))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// Starts a copy of a program that waits.
    fn running(path: &Path) -> (Child, u64) {
        std::fs::copy("/bin/cat", path).unwrap();
        let child = Command::new(path).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let name = path.to_str().unwrap();
        let start_avma = heapr_testkit::wait_until("the program is mapped", || {
            let list = mappings::read(child.id()).unwrap_or_default();
            list.iter()
                .find(|mapping| mapping.name == name && mapping.file_off == 0)
                .map(|found| found.start_avma)
        });
        (child, start_avma)
    }

    fn seen(files: &mut ModuleFiles, child: &Child, path: &Path, start_avma: u64) {
        let module = Module { path: path.to_str().unwrap().to_owned(), build_id: Vec::new() };
        let path = path.as_os_str().as_bytes();
        let seen = SeenModule {
            pid: child.id(),
            path,
            start_avma,
            bias_avma: start_avma,
            is_main: true,
            is_old: true,
        };
        files.see(&module, &seen);
    }

    #[test]
    fn a_file_that_is_deleted_or_replaced_is_held_and_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for (name, is_gone_before, is_held) in
            [("kept", false, false), ("deleted after", false, true), ("deleted before", true, true)]
        {
            let path = folder.path().join(name);
            let (mut child, start_avma) = running(&path);
            let mut files = ModuleFiles::new();
            if is_gone_before {
                std::fs::remove_file(&path).unwrap();
                std::fs::write(&path, "\u{7f}ELF, but another").unwrap();
            }
            seen(&mut files, &child, &path, start_avma);
            if name == "deleted after" {
                std::fs::remove_file(&path).unwrap();
            }
            let held = files.finish();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(held.len(), usize::from(is_held), "{name}: {held:?}");
            if let Some(held) = held.first() {
                let whole = std::fs::read("/bin/cat").unwrap();
                assert_eq!(held.file.metadata().unwrap().len(), whole.len() as u64, "{name}");
            }
        }
    }

    #[test]
    fn an_image_of_what_is_mapped_has_the_header_and_the_symbols() {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, start_avma) = running(&folder.path().join("program"));
        let image = module_image::of_process(child.id(), start_avma, start_avma).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut bytes = vec![0; image.metadata().unwrap().len() as usize];
        image.read_exact_at(&mut bytes, 0).unwrap();
        let file = std::fs::read("/bin/cat").unwrap();
        assert_eq!(bytes[..40], file[..40]);
        assert!(bytes[40..48].iter().all(|&byte| byte == 0));
        let name = b"__libc_start_main";
        assert!(bytes.windows(name.len()).any(|part| part == name));
    }
}
