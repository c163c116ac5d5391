//! Provides the agent as a file that a program can load.
//!
//! The agent is embedded in this library and written to a directory when it is first needed. Its
//! file name comes from its content, so a later version does not overwrite a file that a running
//! program has mapped.
//!
//! | tried in this order | if |
//! |---|---|
//! | `/var/cache/heapr`, `/run/heapr-agent` | root |
//! | `$XDG_RUNTIME_DIR/heapr`, `$XDG_CACHE_HOME/heapr/agent`, `$HOME/.cache/heapr/agent` | the variable is set |
//! | `/tmp/heapr-UID` | always |
//!
//! A directory is used only if it is not a symbolic link, belongs to this user, and only this user
//! may change it. Root's directories are readable for all users. A program that root starts may
//! change its user (`su`, `setpriv`), and its loader complains of a library that it cannot open.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use heapr_files::{NewFile, OwnFolder};
use rustix::fs::{Mode, OFlags};

use crate::Error;
use crate::content_hash::content_hash;
use crate::runtime_directory::check_parent;

/// Agent's library, unpacked.
pub(crate) static AGENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut content = Vec::with_capacity(1 << 20);
    let embedded: &[u8] = include_bytes!(env!("HEAPR_AGENT_LIBRARY"));
    ZlibDecoder::new(embedded).read_to_end(&mut content).expect("the build has compressed it");
    content
});

/// Size in bytes of the embedded agent.
#[must_use]
pub fn agent_bytes() -> usize {
    number(env!("HEAPR_AGENT_BYTES")) as usize
}

/// [`content_hash`] of the agent: the embedded one is unpacked only if no file has it yet.
fn agent_hash() -> u64 {
    number(env!("HEAPR_AGENT_HASH"))
}

/// Parses a number that the build script has written.
fn number(digits: &str) -> u64 {
    digits.parse().expect("the build writes numbers")
}

const FILE_NAME_START: &str = "heapr-agent-";

/// Returns the path of the agent's file, which is written if it does not exist.
///
/// # Errors
/// No directory is private, writable, and allows code to be mapped.
pub(crate) fn agent_file() -> Result<PathBuf, Error> {
    first_of(candidates())
}

/// Returns the path of an agent file that outlives the user's logins, for the environment of
/// shells.
///
/// # Errors
/// See [`agent_file`].
pub(crate) fn lasting_agent_file() -> Result<PathBuf, Error> {
    let (passing, mut lasting): (Vec<_>, Vec<_>) =
        candidates().into_iter().partition(|path| path.starts_with("/run"));
    lasting.extend(passing);
    first_of(lasting)
}

/// Builds a list of libraries to be preloaded: the agent first, and no agents of other builds.
pub(crate) fn preload_with(agent: &Path, present: &OsStr) -> OsString {
    let is_agent = |part: &[u8]| {
        let name = part.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        name.starts_with(FILE_NAME_START.as_bytes()) && name.ends_with(b".so")
    };
    let mut preload = agent.as_os_str().as_bytes().to_vec();
    for part in present.as_bytes().split(|&byte| byte == b':' || byte == b' ') {
        if !part.is_empty() && !is_agent(part) {
            preload.push(b':');
            preload.extend_from_slice(part);
        }
    }
    OsString::from_vec(preload)
}

/// Users who may load the agent from a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    Owner,
    Everybody,
}

impl Readers {
    /// Directories of root's, whose parents are not created.
    const SHARED: [&str; 2] = ["/var/cache/heapr", "/run/heapr-agent"];

    fn of(directory: &Path) -> Self {
        if Self::SHARED.iter().any(|shared| directory == Path::new(shared)) {
            Self::Everybody
        } else {
            Self::Owner
        }
    }

    fn directory_mode(self) -> u32 {
        match self {
            Self::Owner => 0o700,
            Self::Everybody => 0o755,
        }
    }

    /// Mode of the file in the directory; a loader only needs to read.
    fn file_mode(self) -> u32 {
        match self {
            Self::Owner => 0o700,
            Self::Everybody => 0o644,
        }
    }
}

fn first_of(directories: Vec<PathBuf>) -> Result<PathBuf, Error> {
    let mut reasons = Vec::new();
    for directory in directories {
        match place(&directory, Readers::of(&directory)) {
            Ok(path) => return Ok(path),
            Err(reason) => reasons.push(format!("{}: {reason}", directory.display())),
        }
    }
    Err(Error::NoAgentDirectory { reasons: reasons.join("; ") })
}

fn candidates() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let from =
        |variable: &str, below: &str| std::env::var_os(variable).map(|base| PathBuf::from(base).join(below));
    let of_root = Readers::SHARED.iter().filter(|_| rustix::process::geteuid().is_root());
    let of_user = [
        from("XDG_RUNTIME_DIR", "heapr"),
        from("XDG_CACHE_HOME", "heapr/agent"),
        from("HOME", ".cache/heapr/agent"),
        Some(PathBuf::from(format!("/tmp/heapr-{uid}"))),
    ];
    of_root
        .map(PathBuf::from)
        .chain(of_user.into_iter().flatten())
        .filter(|path| path.is_absolute())
        .collect()
}

fn place(directory: &Path, readers: Readers) -> Result<PathBuf, String> {
    // The loader splits LD_PRELOAD at spaces and colons.
    if directory.to_string_lossy().contains([' ', ':']) {
        return Err("its name has a space or a colon".to_owned());
    }
    if let Some(parent) = directory.parent() {
        match readers {
            Readers::Owner => fs::create_dir_all(parent).map_err(|error| error.to_string())?,
            Readers::Everybody => check_parent(parent)?,
        }
    }
    match DirBuilder::new().mode(readers.directory_mode()).create(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.to_string()),
        _ => {}
    }
    let metadata = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    if !metadata.is_dir()
        || metadata.uid() != rustix::process::geteuid().as_raw()
        || metadata.mode() & 0o022 != 0
    {
        return Err("it is not a directory of this user alone".to_owned());
    }
    let filesystem = rustix::fs::statvfs(directory).map_err(|error| error.to_string())?;
    if filesystem.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return Err("it is mounted noexec".to_owned());
    }
    if readers == Readers::Everybody && metadata.mode() & 0o777 != readers.directory_mode() {
        // The umask has narrowed the mode. Symbolic links are not followed, as above.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        rustix::fs::open(directory, flags, Mode::empty())
            .and_then(|opened| rustix::fs::fchmod(&opened, Mode::from_raw_mode(readers.directory_mode())))
            .map_err(|error| error.to_string())?;
    }
    let path = directory.join(format!("{FILE_NAME_START}{:016x}.so", agent_hash()));
    if !is_ours(&path, readers) {
        write(directory, &path, readers).map_err(|error| error.to_string())?;
    }
    Ok(path)
}

fn is_ours(path: &Path, readers: Readers) -> bool {
    let options =
        OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path);
    let Ok(mut file) = options else { return false };
    let is_ours = file.metadata().is_ok_and(|metadata| {
        let is_readable = readers == Readers::Owner || metadata.mode() & 0o777 == readers.file_mode();
        let is_whole = metadata.len() == agent_bytes() as u64;
        metadata.uid() == rustix::process::geteuid().as_raw() && is_readable && is_whole
    });
    let mut content = Vec::with_capacity(agent_bytes() + 1);
    is_ours && file.read_to_end(&mut content).is_ok() && content_hash(&content) == agent_hash()
}

fn write(directory: &Path, path: &Path, readers: Readers) -> std::io::Result<()> {
    let mut file =
        NewFile::create_in(&OwnFolder::open(directory)?, Path::new(path.file_name().unwrap_or_default()))?;
    file.write_all(&AGENT)?;
    file.set_mode(readers.file_mode())?;
    file.keep_unsynced().map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_everybody_may_load_is_readable_whatever_the_mask_and_changed_by_its_owner_only() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("heapr");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let path = place(&directory, Readers::Everybody).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&path)), (0o755, 0o644));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(place(&directory, Readers::Everybody).unwrap(), path);
        assert_eq!(mode(&path), 0o644);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        place(&directory, Readers::Everybody).unwrap_err();
        assert_eq!(mode(&directory), 0o777);
    }

    #[test]
    fn a_file_that_is_damaged_is_written_anew_and_a_whole_one_is_left() {
        assert_eq!((AGENT.len(), content_hash(&AGENT)), (agent_bytes(), agent_hash()));
        let base = tempfile::tempdir().unwrap();
        let path = place(base.path(), Readers::Owner).unwrap();
        let written = || fs::metadata(&path).unwrap().ino();
        let first = written();
        assert_eq!(place(base.path(), Readers::Owner).unwrap(), path);
        assert_eq!(written(), first);
        let mut content = fs::read(&path).unwrap();
        assert_eq!(content, *AGENT);
        content[4711] ^= 1;
        fs::write(&path, &content).unwrap();
        place(base.path(), Readers::Owner).unwrap();
        assert_eq!(fs::read(&path).unwrap(), *AGENT);
    }

    #[test]
    fn a_shared_directory_is_no_link_and_lies_where_nobody_else_may_change_it() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("heapr");
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), &directory).unwrap();
        place(&directory, Readers::Everybody).unwrap_err();
        assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
        fs::remove_file(&directory).unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(place(&directory, Readers::Everybody).unwrap_err().contains("may change"));
        assert!(!directory.exists());
    }

    #[test]
    fn other_builds_agents_are_left_out_and_other_libraries_stay() {
        let of = |present: &str| preload_with(Path::new("/a/heapr-agent-1.so"), present.as_ref());
        assert_eq!(of(""), "/a/heapr-agent-1.so");
        assert_eq!(of("/x/heapr-agent-0.so:/y.so /a/heapr-agent-1.so"), "/a/heapr-agent-1.so:/y.so");
    }
}
