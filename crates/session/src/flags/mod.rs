//! Flags: programs that are traced or snapshotted whenever they start, until the flag is removed.
//!
//! ```text
//! {"schema": "heapr-flags/1", "flags": [{"kind": "heap", "target": {"name": "redis-server"}}, …]}
//! ```
//!
//! The file is `$XDG_CONFIG_HOME/heapr/flags.json` (or `~/.config/…`) for one user,
//! `/etc/heapr/flags.json` for the system. A new version is written beside it and renamed, mode
//! 0600 (0644 for the system). A symbolic link, or a file of another user, is not read. A flag
//! costs nothing while no session uses it.

pub(crate) mod exec_guard;
pub(crate) mod flag_cache;
pub(crate) mod flag_target;
pub(crate) mod flag_watch;
pub(crate) mod flagged_programs;
pub(crate) mod shell_flags;
pub(crate) mod watched_filesystems;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use heapr_files::{Existing, NewFile};
use serde::{Deserialize, Serialize};

use crate::flags::flag_target::{FlagTarget, ProcessFacts};

/// Action for a flagged process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    /// Traces every allocation.
    Heap,
    /// Tracks the live heap for snapshots, without a stream of events.
    Snapshot,
}

/// Flag: an action for certain processes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flag {
    /// Action for the processes.
    pub kind: FlagKind,
    /// Processes that the flag applies to.
    pub target: FlagTarget,
}

/// Owner of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagScope {
    /// This user.
    User,
    /// The machine, for all users; only root changes these flags.
    System,
}

/// Flags of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    flags: Vec<Flag>,
}

/// Errors of flags.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlagError {
    /// Name that no target can have.
    #[error("{field} {value:?} cannot be flagged: {reason}")]
    BadTarget {
        /// Kind of the name.
        field: &'static str,
        /// Requested name.
        value: String,
        /// Reason for which the name is invalid.
        reason: &'static str,
    },
    /// No directory for the file.
    #[error(
        "there is no place for the flags: neither XDG_CONFIG_HOME nor HOME is an absolute path; --system takes the machine's"
    )]
    NoConfigDirectory,
    /// File or directory that cannot be used.
    #[error("failed to {what} {}: {source}", path.display())]
    File {
        /// Action that failed.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// File that another user may have put there.
    #[error("{} is not used: {reason}", path.display())]
    Untrusted {
        /// Path of the file.
        path: PathBuf,
        /// Reason for which it is not trusted.
        reason: String,
    },
    /// File that does not contain flags.
    #[error("{} is no file of flags: {reason}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Reason for which it is refused.
        reason: String,
    },
}

const SCHEMA: &str = "heapr-flags/1";
/// Largest size in bytes of a file of flags, far above what people write.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
struct FlagFile {
    schema: String,
    flags: Vec<Flag>,
}

impl FlagScope {
    /// Returns the path of the flags.
    ///
    /// # Errors
    /// The user has no home.
    pub fn path(self) -> Result<PathBuf, FlagError> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = match self {
            Self::System => PathBuf::from("/etc"),
            Self::User => absolute("XDG_CONFIG_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".config")))
                .ok_or(FlagError::NoConfigDirectory)?,
        };
        Ok(base.join("heapr/flags.json"))
    }

    fn mode(self) -> u32 {
        // The system's flags must be visible to every user's sessions.
        if self == Self::System { 0o644 } else { 0o600 }
    }
}

impl Flags {
    /// Loads the flags of `scope`; without a file there are no flags.
    ///
    /// # Errors
    /// The file cannot be read, may be another user's, or is damaged.
    pub fn load(scope: FlagScope) -> Result<Self, FlagError> {
        Self::load_from(&scope.path()?)
    }

    /// Loads the user's flags and the system's together.
    ///
    /// # Errors
    /// See [`Self::load`], for either file.
    pub fn load_all() -> Result<Self, FlagError> {
        let mut all = Self::load(FlagScope::System)?;
        match Self::load(FlagScope::User) {
            Ok(own) => own.flags.into_iter().for_each(|flag| all.enable_checked(flag)),
            // A service without a home has only the system's flags.
            Err(FlagError::NoConfigDirectory) => {}
            Err(error) => return Err(error),
        }
        Ok(all)
    }

    fn load_from(path: &Path) -> Result<Self, FlagError> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let failed = |source| FlagError::File { what: "read", path: path.to_owned(), source };
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                let reason = "it is a symbolic link".to_owned();
                return Err(FlagError::Untrusted { path: path.to_owned(), reason });
            }
            Err(error) => return Err(failed(error)),
        };
        let facts = file.metadata().map_err(failed)?;
        let me = rustix::process::geteuid().as_raw();
        if !facts.is_file() || (facts.uid() != me && facts.uid() != 0) || facts.mode() & 0o022 != 0 {
            let reason = format!(
                "it must be a file that only its owner writes, and belong to this user or root (user {}, mode {:o})",
                facts.uid(),
                facts.mode() & 0o7777
            );
            return Err(FlagError::Untrusted { path: path.to_owned(), reason });
        }
        let mut text = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
        let malformed = |reason| FlagError::Malformed { path: path.to_owned(), reason };
        if text.len() as u64 > MOST_BYTES {
            return Err(malformed(format!("it has more than {MOST_BYTES} bytes")));
        }
        let file: FlagFile = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if file.schema != SCHEMA {
            return Err(malformed(format!("its schema is {:?}, not {SCHEMA:?}", file.schema)));
        }
        let mut flags = Self::default();
        for flag in file.flags {
            flag.target.check()?;
            flags.enable_checked(flag);
        }
        Ok(flags)
    }

    /// Writes the flags completely, or not at all if it fails.
    fn save_to(&self, path: &Path, mode: u32) -> Result<(), FlagError> {
        let failed = |what| move |source| FlagError::File { what, path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder_mode = if mode == 0o600 { 0o700 } else { 0o755 };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(folder_mode)
            .create(folder)
            .map_err(failed("make the directory of"))?;
        let file = FlagFile { schema: SCHEMA.to_owned(), flags: self.flags.clone() };
        let mut text = serde_json::to_vec_pretty(&file).map_err(|error| failed("encode")(error.into()))?;
        text.push(b'\n');
        let written = NewFile::create(path, Existing::Replaced).and_then(|mut file| {
            file.write_all(&text)?;
            file.set_mode(mode)?;
            file.keep()
        });
        written.map(drop).map_err(failed("write"))
    }

    /// Changes the flags of `scope` under a lock, so that concurrent changes both last.
    ///
    /// # Errors
    /// See [`Self::load`] and [`Self::save`].
    pub fn change<T>(scope: FlagScope, change: impl FnOnce(&mut Self) -> T) -> Result<T, FlagError> {
        let path = scope.path()?;
        Self::change_at(&path, scope.mode(), change)
    }

    fn change_at<T>(path: &Path, mode: u32, change: impl FnOnce(&mut Self) -> T) -> Result<T, FlagError> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let failed = |source| FlagError::File { what: "lock", path: folder.to_owned(), source };
        let folder_mode = if mode == 0o600 { 0o700 } else { 0o755 };
        std::fs::DirBuilder::new().recursive(true).mode(folder_mode).create(folder).map_err(failed)?;
        let lock = std::fs::File::open(folder).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut flags = Self::load_from(path)?;
        let before = flags.clone();
        let outcome = change(&mut flags);
        if flags != before {
            // Flags of processes that have ended are removed.
            flags.flags.retain(|flag| !flag.target.is_over());
            flags.save_to(path, mode)?;
        }
        Ok(outcome)
    }

    /// Sets a flag. Returns whether it is new.
    ///
    /// # Errors
    /// The target is invalid.
    pub fn enable(&mut self, flag: Flag) -> Result<bool, FlagError> {
        flag.target.check()?;
        let is_new = !self.flags.contains(&flag);
        self.enable_checked(flag);
        Ok(is_new)
    }

    fn enable_checked(&mut self, flag: Flag) {
        if let Err(place) = self.flags.binary_search(&flag) {
            self.flags.insert(place, flag);
        }
    }

    /// Removes a flag. Returns whether it existed.
    pub fn disable(&mut self, flag: &Flag) -> bool {
        let count = self.flags.len();
        self.flags.retain(|other| other != flag);
        self.flags.len() != count
    }

    /// Returns the flags that can still apply, sorted: a process's own flag ends with the process.
    pub fn in_force(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter().filter(|flag| !flag.target.is_over())
    }

    /// Whether a process is flagged by its id.
    #[must_use]
    pub fn names_process(&self, kind: FlagKind, process: &ProcessFacts) -> bool {
        let is_by_pid = |flag: &Flag| matches!(flag.target, FlagTarget::Pid { .. });
        self.flags.iter().any(|flag| flag.kind == kind && is_by_pid(flag) && flag.target.fits(process))
    }

    /// All flags of the file, sorted.
    #[must_use]
    pub fn all(&self) -> &[Flag] {
        &self.flags
    }

    /// Returns the action for a process. If both kinds fit, it is the trace, which contains what
    /// snapshots need.
    #[must_use]
    pub fn matches(&self, process: &ProcessFacts) -> Option<FlagKind> {
        self.flags.iter().filter(|flag| flag.target.fits(process)).map(|flag| flag.kind).min()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn flag(name: &str) -> Flag {
        Flag { kind: FlagKind::Heap, target: FlagTarget::Name(name.to_owned()) }
    }

    #[test]
    fn flags_outlive_the_process_and_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heapr/flags.json");
        assert_eq!(Flags::load_from(&path).unwrap(), Flags::default());
        let is_new = Flags::change_at(&path, 0o600, |flags| flags.enable(flag("redis-server"))).unwrap();
        assert!(is_new.unwrap());
        let is_new = Flags::change_at(&path, 0o600, |flags| flags.enable(flag("redis-server"))).unwrap();
        assert!(!is_new.unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let flags = Flags::load_from(&path).unwrap();
        assert_eq!(flags.all(), &[flag("redis-server")]);
        assert!(Flags::change_at(&path, 0o600, |flags| flags.disable(&flag("redis-server"))).unwrap());
        assert!(Flags::load_from(&path).unwrap().all().is_empty());
        // No temporary file is left.
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn two_changes_at_once_both_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let name = format!("program-{number}");
                    Flags::change_at(path, 0o600, |flags| flags.enable(flag(&name))).unwrap().unwrap()
                });
            }
        });
        assert_eq!(Flags::load_from(&path).unwrap().all().len(), 8);
    }

    #[test]
    fn a_file_that_others_may_write_and_a_link_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        let mut flags = Flags::default();
        flags.enable(flag("x")).unwrap();
        flags.save_to(&path, 0o600).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(Flags::load_from(&path), Err(FlagError::Untrusted { .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("link.json");
        symlink(&path, &link).unwrap();
        assert!(matches!(Flags::load_from(&link), Err(FlagError::Untrusted { .. })));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_an_empty_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        for text in [
            "",
            "{}",
            "[1]",
            r#"{"schema":"heapr-flags/9","flags":[]}"#,
            r#"{"schema":"heapr-flags/1","flags":[{"kind":"heap","target":{"name":"a/b"}}]}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(Flags::load_from(&path).is_err(), "{text}");
        }
    }

    #[test]
    fn a_trace_is_preferred_where_both_kinds_fit() {
        let mut flags = Flags::default();
        let target = FlagTarget::Name("x".to_owned());
        flags.enable(Flag { kind: FlagKind::Snapshot, target: target.clone() }).unwrap();
        let process = ProcessFacts { pid: 7, executable: "/usr/bin/x".into(), ..ProcessFacts::default() };
        assert_eq!(flags.matches(&process), Some(FlagKind::Snapshot));
        flags.enable(Flag { kind: FlagKind::Heap, target }).unwrap();
        assert_eq!(flags.matches(&process), Some(FlagKind::Heap));
    }
}
