//! Traces a user's own programs from their first instruction, without root. The environment of the
//! user's shells leads to a file that lists the programs a session wants.
//!
//! ```text
//! LD_PRELOAD=.../heapr-agent-….so             loaded by every program started from that shell
//! HEAPR_FLAGGED=/run/user/1000/heapr/flagged  the agent reads flagged.heap, flagged.snapshot there:
//!
//!   session 4711:5                            written by the session, removed at its end;
//!   name redis-server                         without it the agent does nothing
//! ```

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use heapr_files::{Existing, NewFile};

use crate::Error;
use crate::agent_file::{lasting_agent_file, preload_with};
use crate::flags::flag_cache::FlagCache;
use crate::flags::flag_target::FlagTarget;
use crate::flags::{FlagKind, Flags};
use crate::runtime_directory::RuntimeDirectory;

/// Name of the variable, which the agent knows too.
pub(crate) const VARIABLE: &str = "HEAPR_FLAGGED";
/// Largest size in bytes of the file; the agent reads no more.
const FILE_BYTES_MAX: usize = 16 << 10;

/// Returns the variables that a shell or a user's service manager sets. Flagged programs that it
/// starts are then traced from their first instruction.
///
/// # Errors
/// No directory is suitable for the agent's file, or for the sessions.
pub fn shell_environment() -> Result<Vec<(&'static str, OsString)>, Error> {
    let directory = RuntimeDirectory::first()?;
    let present = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let preload = preload_with(&lasting_agent_file()?, &present);
    Ok(vec![("LD_PRELOAD", preload), (VARIABLE, directory.path().join("flagged").into_os_string())])
}

/// Returns the directory of the sockets of this user's sessions; created if it does not exist.
///
/// # Errors
/// No directory is usable; the error has the reason for each.
pub fn sessions_directory() -> Result<PathBuf, Error> {
    Ok(RuntimeDirectory::first()?.path().to_owned())
}

/// File of a session for shells; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ShellFlags {
    path: PathBuf,
    kind: FlagKind,
    session: String,
    flags: FlagCache,
    written: Option<String>,
}

impl ShellFlags {
    /// Creates the handle of a session's file; `None` without a directory for it.
    pub(crate) fn new(kind: FlagKind, session: &str) -> Option<Self> {
        let directory = RuntimeDirectory::first().ok()?;
        let ending = match kind {
            FlagKind::Heap => "heap",
            FlagKind::Snapshot => "snapshot",
        };
        let path = directory.path().join(format!("flagged.{ending}"));
        Some(Self { path, kind, session: session.to_owned(), flags: FlagCache::default(), written: None })
    }

    /// Rewrites the file if the flags have changed.
    pub(crate) fn renew(&mut self) {
        if self.written.is_some() && !self.flags.is_changed() {
            return;
        }
        let text = text_of(self.flags.current(), self.kind, &self.session);
        if self.written.as_ref() != Some(&text) && write(&self.path, &text).is_ok() {
            self.written = Some(text);
        }
    }
}

impl Drop for ShellFlags {
    fn drop(&mut self) {
        // The file may be another session's by now.
        if std::fs::read_to_string(&self.path).ok() == self.written && self.written.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn text_of(flags: &Flags, kind: FlagKind, session: &str) -> String {
    let mut text = format!("session {session}\n");
    for flag in flags.all().iter().filter(|flag| flag.kind == kind) {
        if let FlagTarget::Name(name) = &flag.target
            && text.len() + name.len() + 6 <= FILE_BYTES_MAX
        {
            text += &format!("name {name}\n");
        }
    }
    text
}

/// Replaces the file as a whole, so that no reader sees a part of it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = NewFile::create(path, Existing::Replaced)?;
    file.write_all(text.as_bytes())?;
    file.keep_unsynced().map(drop)
}

/// Whether a process was started with the variable, so that its agent finds the session by itself.
pub(crate) fn is_told_by_shell(pid: u32) -> bool {
    heapr_proc::variable(pid, "HEAPR_FLAGGED").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flag;

    #[test]
    fn the_file_names_the_session_and_the_programs_of_its_kind() {
        let mut flags = Flags::default();
        for (kind, target) in [
            (FlagKind::Heap, FlagTarget::Name("b".into())),
            (FlagKind::Heap, FlagTarget::Name("a a".into())),
            (FlagKind::Heap, FlagTarget::Unit("u".into())),
            (FlagKind::Snapshot, FlagTarget::Name("s".into())),
        ] {
            flags.enable(Flag { kind, target }).unwrap();
        }
        assert_eq!(text_of(&flags, FlagKind::Heap, "1:2"), "session 1:2\nname a a\nname b\n");
        assert_eq!(text_of(&flags, FlagKind::Snapshot, "1:2"), "session 1:2\nname s\n");
    }
}
