//! The agent as a file that a program can load.
//!
//! It is embedded in this library and written to a private directory when it is first needed, under a name made from
//! its content: a later version does not overwrite one that a running program has mapped.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

pub(crate) static AGENT: &[u8] = include_bytes!(env!("HEAPR_AGENT_LIBRARY"));

const FILE_NAME_START: &str = "heapr-agent-";

/// Path of the agent's file, written unless it is there.
///
/// # Errors
/// No directory is private, writable, and allows code to be mapped.
pub(crate) fn agent_file() -> Result<PathBuf, Error> {
    first_of(candidates())
}

/// Path of a file that outlives the user's logins, for the environment of shells.
///
/// # Errors
/// As [`agent_file`].
pub(crate) fn lasting_agent_file() -> Result<PathBuf, Error> {
    let (passing, mut lasting): (Vec<_>, Vec<_>) =
        candidates().into_iter().partition(|path| path.starts_with("/run"));
    lasting.extend(passing);
    first_of(lasting)
}

/// A list of libraries to be loaded first, with the agent before all others, and without agents of other builds.
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

fn first_of(directories: Vec<PathBuf>) -> Result<PathBuf, Error> {
    let mut reasons = Vec::new();
    for directory in directories {
        match place(&directory) {
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
    [
        from("XDG_RUNTIME_DIR", "heapr"),
        from("XDG_CACHE_HOME", "heapr/agent"),
        from("HOME", ".cache/heapr/agent"),
        Some(PathBuf::from(format!("/tmp/heapr-{uid}"))),
    ]
    .into_iter()
    .flatten()
    .filter(|path| path.is_absolute())
    .collect()
}

fn place(directory: &Path) -> Result<PathBuf, String> {
    // The loader splits LD_PRELOAD at both.
    if directory.to_string_lossy().contains([' ', ':']) {
        return Err("its name has a space or a colon".to_owned());
    }
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
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
    let path = directory.join(format!("{FILE_NAME_START}{:016x}.so", content_hash()));
    if !is_ours(&path) {
        write(directory, &path).map_err(|error| error.to_string())?;
    }
    Ok(path)
}

/// FNV-1a, 64 bits: names the version, guards nothing (the content is compared).
fn content_hash() -> u64 {
    AGENT
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn is_ours(path: &Path) -> bool {
    let options =
        OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path);
    let Ok(mut file) = options else { return false };
    let is_ours = file.metadata().is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw());
    let mut content = Vec::with_capacity(AGENT.len());
    is_ours && file.read_to_end(&mut content).is_ok() && content == AGENT
}

fn write(directory: &Path, path: &Path) -> std::io::Result<()> {
    let temporary = directory.join(format!(".heapr-agent.{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&temporary)?;
    file.write_all(AGENT)?;
    drop(file);
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_builds_agents_are_left_out_and_other_libraries_stay() {
        let of = |present: &str| preload_with(Path::new("/a/heapr-agent-1.so"), present.as_ref());
        assert_eq!(of(""), "/a/heapr-agent-1.so");
        assert_eq!(of("/x/heapr-agent-0.so:/y.so /a/heapr-agent-1.so"), "/a/heapr-agent-1.so:/y.so");
    }
}
