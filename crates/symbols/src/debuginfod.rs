//! Debug files from the servers that the user has named in `DEBUGINFOD_URLS`.
//!
//! ```text
//! kept     from the cache folder of debuginfod's client, without a request
//! fetch    by that client, or by curl if it is not installed, into the same folder; bounded
//! ```
//! A file is accepted only if it has the requested build-id.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use heapr_files::{Existing, NewFile};

use crate::elf_facts::ElfFacts;

/// Time for which a server's miss is remembered, as in the client.
const MISS_LIMIT: Duration = Duration::from_secs(600);
const CONNECT_LIMIT_S: u32 = 5;
/// Largest size in bytes of a file that is downloaded.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Reason why a debug file could not be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFetched {
    /// `DEBUGINFOD_URLS` is not set.
    #[error("no server is named (DEBUGINFOD_URLS)")]
    NoServer,
    /// No server has the file.
    #[error("no debuginfod server has it")]
    NotThere,
    /// No server answered in time.
    #[error("no debuginfod server answered within {0} s")]
    TooSlow(u64),
    /// No client program is installed.
    #[error("neither debuginfod-find nor curl is installed")]
    NoClient,
    /// The cache folder does not exist, or cannot be written.
    #[error("the folder for debug files (~/.cache/debuginfod_client) cannot be written")]
    NoFolder,
}

/// True if the user has named servers.
#[must_use]
pub fn has_servers() -> bool {
    std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())
}

/// Debug file of a build that was downloaded before.
#[must_use]
pub fn kept(build_id: &[u8]) -> Option<PathBuf> {
    let path = place(build_id)?;
    is_of_build(&path, build_id).then_some(path)
}

/// Downloads the debug file of a build. `limit` is the time for all servers together.
///
/// # Errors
/// See [`NotFetched`].
pub fn fetch(build_id: &[u8], limit: Duration) -> Result<PathBuf, NotFetched> {
    if !has_servers() || build_id.is_empty() {
        return Err(NotFetched::NoServer);
    }
    if let Some(path) = kept(build_id) {
        return Ok(path);
    }
    let path = place(build_id).ok_or(NotFetched::NoFolder)?;
    if is_miss(&path) {
        return Err(NotFetched::NotThere);
    }
    let deadline = Instant::now() + limit;
    match by_client(build_id, deadline) {
        Err(ErrorKind::NotFound) => by_curl(&path, build_id, deadline)?,
        Err(ErrorKind::TimedOut) => return Err(NotFetched::TooSlow(limit.as_secs())),
        // The file is at the path that the client printed, or does not exist.
        Ok(found) => return found.ok_or(NotFetched::NotThere),
        Err(_) => return Err(NotFetched::NotThere),
    }
    kept(build_id).ok_or_else(|| match Instant::now() < deadline {
        true => NotFetched::NotThere,
        false => NotFetched::TooSlow(limit.as_secs()),
    })
}

/// Path at which the client caches the debug file of a build.
fn place(build_id: &[u8]) -> Option<PathBuf> {
    Some(folder()?.join(hex(build_id)).join("debuginfo"))
}

/// Cache folder of the client, as in its manual.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable("DEBUGINFOD_CACHE_PATH") {
        return Some(folder);
    }
    let home = variable("HOME");
    let former = home.as_ref().map(|home| home.join(".debuginfod_client_cache"));
    if let Some(former) = former.filter(|former| former.is_dir()) {
        return Some(former);
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
    Some(cache?.join("debuginfod_client"))
}

fn hex(build_id: &[u8]) -> String {
    build_id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_of_build(path: &Path, build_id: &[u8]) -> bool {
    !build_id.is_empty() && ElfFacts::read(path).is_some_and(|found| found.build_id == build_id)
}

/// True for an empty file, which records that no server had the build a short time ago.
fn is_miss(path: &Path) -> bool {
    let Ok(facts) = fs::metadata(path) else { return false };
    let age = facts.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    facts.len() == 0 && age.is_some_and(|age| age < MISS_LIMIT)
}

/// Runs debuginfod's own client. `NotFound`: it is not installed.
fn by_client(build_id: &[u8], deadline: Instant) -> Result<Option<PathBuf>, ErrorKind> {
    let left_s = deadline.saturating_duration_since(Instant::now()).as_secs().max(1);
    let mut child = Command::new("debuginfod-find")
        .args(["debuginfo", &hex(build_id)])
        .env("DEBUGINFOD_PROGRESS", "0")
        .env("DEBUGINFOD_MAXTIME", left_s.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.kind())?;
    if !ends_before(&mut child, deadline) {
        return Err(ErrorKind::TimedOut);
    }
    let output = child.wait_with_output().map_err(|error| error.kind())?;
    let path = String::from_utf8(output.stdout).unwrap_or_default();
    let path = PathBuf::from(path.trim_end());
    Ok(Some(path).filter(|path| is_of_build(path, build_id)))
}

/// Requests the file from each server with curl, and puts the first answer in place.
fn by_curl(path: &Path, build_id: &[u8], deadline: Instant) -> Result<(), NotFetched> {
    let parent = path.parent().ok_or(NotFetched::NoFolder)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
    made.map_err(|_| NotFetched::NoFolder)?;
    let new_file = || NewFile::create(path, Existing::Replaced).map_err(|_| NotFetched::NoFolder);
    let urls = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
    let mut is_answered = true;
    for url in urls.split_whitespace() {
        let left_s = deadline.saturating_duration_since(Instant::now()).as_secs();
        if left_s == 0 {
            is_answered = false;
            break;
        }
        let mut settings = String::new();
        setting(
            &mut settings,
            "url",
            &format!("{}/buildid/{}/debuginfo", url.trim_end_matches('/'), hex(build_id)),
        );
        let file = new_file()?;
        let output = file.try_clone().map_err(|_| NotFetched::NoFolder)?;
        let _ = write!(
            settings,
            "silent\nfail\nlocation\nproto = \"=http,https,file\"\nmax-filesize = {FILE_BYTES_MAX}\n\
             connect-timeout = {CONNECT_LIMIT_S}\nmax-time = {left_s}\n"
        );
        let child = Command::new("curl")
            .args(["-q", "--config", "-"])
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.map_err(|_| NotFetched::NoClient)?;
        if let Some(mut input) = child.stdin.take() {
            // A child that ends before it has read its input has failed.
            let _ = input.write_all(settings.as_bytes());
        }
        let is_whole = ends_before(&mut child, deadline) && child.wait().is_ok_and(|status| status.success());
        if is_whole && is_of_build(&file.partial_path(), build_id) && file.keep_unsynced().is_ok() {
            return Ok(());
        }
    }
    if is_answered && Instant::now() < deadline {
        // An empty file records the miss, as in the client.
        let _ = new_file()?.keep_unsynced();
    }
    Ok(())
}

fn setting(settings: &mut String, name: &str, value: &str) {
    let value: String = value.chars().filter(|c| !c.is_control()).collect();
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = writeln!(settings, "{name} = \"{quoted}\"");
}

/// Waits for a child; returns false after killing one that takes too long.
fn ends_before(child: &mut Child, deadline: Instant) -> bool {
    const ROUND: Duration = Duration::from_millis(10);
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(ROUND),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
