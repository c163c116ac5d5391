//! Private folder into which a virtual machine writes. It is held by descriptor: whoever replaces
//! its name leads heapr nowhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::AttachError;

/// Name of the dump in the folder.
pub(super) const FILE: &str = "heap.hprof";
/// Beginning of the names of its parts, which several threads of the virtual machine write.
const PART: &str = "heap.hprof.p";
/// Largest number of names that are tried for the folder.
const TRIES: u32 = 100;
/// Room that stays free beside the dump, in bytes.
const SPARE_BYTES: u64 = 64 << 20;
/// Kind of a file system that lies in memory (tmpfs), as statfs tells it.
const IN_MEMORY: i64 = 0x0102_1994;
/// Shell's commands that remove the folder when their input ends: when heapr ends, in any way.
/// The folder is their working directory. They remove only names that a dump has.
const GUARD: &str = "read -r line; rm -f ./heap.hprof ./heap.hprof.p*; rmdir -- \"../${1##*/}\"";

/// Folder that can hold the private one.
struct Parent {
    /// Path as the process sees it.
    inner: PathBuf,
    held: File,
    free_bytes: u64,
    is_in_memory: bool,
}

/// Private folder of the process's own user, with a shell that removes it even if heapr is killed.
pub(super) struct Folder {
    /// Path as the process sees it.
    inner: PathBuf,
    name: String,
    /// User of the process.
    user: u32,
    parent: File,
    held: File,
    guard: Option<Child>,
}

impl Folder {
    /// Makes the folder where a dump has room. `used_bytes`: bytes in use in the heap, if known.
    pub(super) fn make(pid: u32, user: (u32, u32), used_bytes: Option<u64>) -> Result<Self, AttachError> {
        let needed_bytes =
            used_bytes.map_or(0, |used| used.saturating_add(used / 4).saturating_add(SPARE_BYTES));
        let mut last = None;
        for parent in Parent::all(pid)? {
            let free_bytes = parent.free_bytes;
            if free_bytes < needed_bytes {
                last = Some(AttachError::NoRoom { folder: parent.inner, free_bytes, needed_bytes });
                continue;
            }
            match Self::make_in(parent, pid, user) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last.unwrap_or(AttachError::NoFolder))
    }

    fn make_in(parent: Parent, pid: u32, user: (u32, u32)) -> Result<Self, AttachError> {
        let Parent { inner: inner_parent, held: parent, .. } = parent;
        for number in 0..TRIES {
            let name = format!(".heapr-{}-{pid}-{number}", std::process::id());
            let inner = inner_parent.join(&name);
            match rustix::fs::mkdirat(&parent, &*name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(AttachError::of_file(inner, error.into())),
            }
            let held = opened(&parent, &name, OFlags::DIRECTORY).map_err(io::Error::from);
            let held = held.and_then(|held| give(&held, user).map(|()| held));
            let held = held.map_err(|source| {
                let _ = rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR);
                AttachError::of_file(&inner, source)
            })?;
            let mut folder = Self { inner, name, user: user.0, parent, held, guard: None };
            folder.guard = folder.guarded();
            return Ok(folder);
        }
        Err(AttachError::of_file(inner_parent, io::ErrorKind::AlreadyExists.into()))
    }

    /// Starts the shell that removes the folder.
    fn guarded(&self) -> Option<Child> {
        // Its own process group: a signal of the terminal to heapr does not end it.
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "sh", &self.name])
            .current_dir(place(&self.held))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        guard.ok()
    }

    /// Path of the dump as the process sees it.
    pub(super) fn inner_file(&self) -> PathBuf {
        self.inner.join(FILE)
    }

    /// Opens the dump and removes its name, if it is there.
    pub(super) fn take(&self) -> Option<File> {
        // The folder is the process's: a link, a pipe or another's file in it is not its dump.
        let file = opened(&self.held, FILE, OFlags::NONBLOCK).ok()?;
        let _ = rustix::fs::unlinkat(&self.held, FILE, AtFlags::empty());
        let is_own = |metadata: std::fs::Metadata| metadata.is_file() && metadata.uid() == self.user;
        file.metadata().is_ok_and(is_own).then_some(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        for entry in std::fs::read_dir(place(&self.held)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| name == FILE || name.starts_with(PART)) {
                let _ = rustix::fs::unlinkat(&self.held, Path::new(&name), AtFlags::empty());
            }
        }
        let _ = rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR);
    }
}

impl Parent {
    /// Folders that can hold the private one, those in memory last.
    fn all(pid: u32) -> Result<Vec<Self>, AttachError> {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
        let places =
            [(PathBuf::from("/tmp"), format!("/proc/{pid}/root/tmp")), (cwd, format!("/proc/{pid}/cwd/."))];
        let (mut parents, mut last) = (Vec::new(), None);
        for (inner, outer) in places {
            match Self::open(pid, inner, &outer) {
                Ok(parent) => parents.push(parent),
                Err(source) => last = Some(AttachError::of_file(outer, source)),
            }
        }
        // A file in memory counts as memory of the process's container.
        parents.sort_by_key(|parent| parent.is_in_memory);
        match last {
            Some(error) if parents.is_empty() => Err(error),
            _ => Ok(parents),
        }
    }

    fn open(pid: u32, inner: PathBuf, outer: &str) -> io::Result<Self> {
        let held = opened(rustix::fs::CWD, outer, OFlags::DIRECTORY)?;
        let disk = rustix::fs::fstatvfs(&held)?;
        let is_in_memory = rustix::fs::fstatfs(&held)?.f_type == IN_MEMORY;
        let mut free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        if is_in_memory {
            for limit in heapr_proc::memory_limits(pid) {
                free_bytes = free_bytes.min(limit.free_bytes);
            }
        }
        Ok(Self { inner, held, free_bytes, is_in_memory })
    }
}

/// Path that leads to a held folder in this process, whatever its name leads to.
fn place(held: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

/// Gives a folder to the process's user, if it is the one that was made: heapr's own, and empty.
fn give(held: &File, (user, group): (u32, u32)) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let metadata = held.metadata()?;
    let is_made = metadata.uid() == own && metadata.mode() & 0o777 == 0o700;
    if !is_made || std::fs::read_dir(place(held))?.next().is_some() {
        return Err(io::Error::other("the folder was replaced by another one"));
    }
    if own == user { Ok(()) } else { fchown(held, Some(user), Some(group)) }
}

/// Opens a file for reading. A link is refused: it could lead out of the process's own root.
pub(super) fn opened(folder: impl AsFd, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    rustix::fs::openat(folder, name, flags, Mode::empty()).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_name_leads_nowhere() {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let folder = Folder::make(std::process::id(), own, None).unwrap();
        let foreign = tempfile::tempdir().unwrap();
        let kept = foreign.path().join(FILE);
        std::fs::write(&kept, "kept").unwrap();
        let (link, moved) = (folder.inner.clone(), folder.inner.with_extension("moved"));
        std::fs::rename(&link, &moved).unwrap();
        std::os::unix::fs::symlink(foreign.path(), &link).unwrap();
        for name in [FILE, "heap.hprof.p1"] {
            std::fs::write(moved.join(name), "dump").unwrap();
        }
        assert_eq!(folder.take().unwrap().metadata().unwrap().len(), 4);
        drop(folder);
        assert!(kept.exists());
        std::fs::remove_file(link).unwrap();
        // It is empty.
        std::fs::remove_dir(moved).unwrap();
    }

    #[test]
    fn a_dump_without_room_is_refused() {
        let made = Folder::make(std::process::id(), (0, 0), Some(u64::MAX / 2));
        assert!(matches!(made.err(), Some(AttachError::NoRoom { .. })));
    }
}
