//! Saved scripts of a process that no file on this machine holds as they ran. Such scripts were
//! compiled at load time (TypeScript), made by `eval`, came from a server, or lie in a container.
//! They are saved beside the snapshot, with their source maps.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use heapr_inspector::{Inspector, Script, Worker};
use heapr_proc::start_ticks;
use heapr_v8::analysis::is_of_the_runtime;
use heapr_v8::{SavedScript, map_file};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::output::OutputFile;

/// Largest sum of the texts of saved scripts, and of one map, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 20;
const MAP_BYTES_MAX: u64 = 64 << 20;

/// Writes the saved scripts beside `snapshot`. Errors are printed only, because the snapshot
/// exists.
pub(super) fn keep(scripts: anyhow::Result<Vec<SavedScript>>, snapshot: &Path) {
    let file = SavedScript::file_beside(snapshot);
    let kept = scripts.and_then(|scripts| {
        if scripts.is_empty() {
            // Removes the scripts of the replaced snapshot.
            let _ = std::fs::remove_file(&file);
            return Ok(());
        }
        let mut out = OutputFile::create(&file, true)?;
        SavedScript::write_all(&scripts, &mut out)?;
        out.keep().map(drop)
    });
    if let Err(error) = kept {
        warn!("{}: the scripts could not be kept: {error:#}", file.display());
    }
}

/// Removes the scripts saved with a snapshot that is deleted.
pub(super) fn remove(snapshot: &Path) {
    let _ = std::fs::remove_file(SavedScript::file_beside(snapshot));
}

/// Requests the scripts, and returns those that are to be saved.
pub(super) fn ask(
    inspector: &mut Inspector,
    worker: Option<&Worker>,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<Vec<SavedScript>> {
    let pid = inspector.process().pid;
    let files = Files { root: root_elsewhere(pid), started_at: started_at(pid) };
    let mut scripts = Vec::new();
    let mut left_bytes = TEXT_BYTES_MAX;
    let mut wants = |script: &Script| {
        (script.url.is_empty() || !is_of_the_runtime(&script.url)) && !files.surely_hold(script)
    };
    let mut take = |script: Script, text: String| {
        if files.hold(&script.url, &text) || text.len() > left_bytes {
            return;
        }
        left_bytes -= text.len();
        let source_map = files.map_of(&script);
        let Script { id, url, source_map_url, start, .. } = script;
        scripts.push(SavedScript { id, url, source_map_url, source_map, start, text });
    };
    inspector.scripts(worker, is_cancelled, &mut wants, &mut take)?;
    Ok(scripts)
}

/// Files of a process, as a later reader of the snapshot sees them.
struct Files {
    /// Folder that is `/` to the process, if that is not this machine's.
    root: Option<PathBuf>,
    started_at: Option<SystemTime>,
}

impl Files {
    /// Whether a file holds the script, judged by length and times, so that its text need not be
    /// requested.
    fn surely_hold(&self, script: &Script) -> bool {
        let Some(path) = self.path_here(&script.url) else { return false };
        let Ok(metadata) = std::fs::metadata(&path) else { return false };
        let is_older = metadata.modified().ok() < self.started_at;
        // Types are replaced by spaces, so the length is the same.
        let is_compiled = [".ts", ".mts", ".cts", ".tsx"].iter().any(|end| script.url.ends_with(end));
        is_older
            && !is_compiled
            && metadata.len() <= TEXT_BYTES_MAX as u64
            && text_of(&path).is_some_and(|text| text.encode_utf16().count() as u64 == script.length)
    }

    fn hold(&self, url: &str, text: &str) -> bool {
        self.path_here(url).is_some_and(|path| text_of(&path).is_some_and(|file| file == text))
    }

    fn path_here(&self, url: &str) -> Option<PathBuf> {
        if self.root.is_some() {
            return None;
        }
        // A map file beside the script is found without being saved.
        let name = url.rsplit('/').next().filter(|name| !name.is_empty())?;
        map_file(url, name)
    }

    /// Returns the text of a source map that the process can read and a later reader may not.
    fn map_of(&self, script: &Script) -> Option<String> {
        let path = map_file(&script.url, &script.source_map_url)?;
        let root = match &self.root {
            Some(root) => File::open(root).ok()?,
            None => File::open("/").ok()?,
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Links in a container must not lead outside of it.
        let inside = path.strip_prefix("/").ok()?;
        let file =
            rustix::fs::openat2(root, inside, flags, Mode::empty(), ResolveFlags::IN_ROOT).map(File::from);
        let file = file.ok().filter(|file| {
            file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAP_BYTES_MAX)
        })?;
        let mut text = String::new();
        file.take(MAP_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// Returns the text of a script's file as V8 receives it.
fn text_of(path: &Path) -> Option<String> {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let text = is_file.then(|| std::fs::read_to_string(path).ok()).flatten()?;
    Some(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn root_elsewhere(pid: u32) -> Option<PathBuf> {
    let root = |pid: u32| std::fs::metadata(format!("/proc/{pid}/root/.")).ok();
    let mounts = |pid: u32| heapr_proc::namespace(pid, "mnt");
    use std::os::unix::fs::MetadataExt as _;
    let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let own = std::process::id();
    let is_ours = mounts(pid) == mounts(own) && root(pid).map(number) == root(own).map(number);
    (!is_ours).then(|| PathBuf::from(format!("/proc/{pid}/root")))
}

/// Returns the time when a process was started.
fn started_at(pid: u32) -> Option<SystemTime> {
    /// The kernel's USER_HZ, which is the same on every machine.
    const TICKS_PER_S: u64 = 100;
    let since_boot = Duration::from_millis(start_ticks(pid)?.saturating_mul(1000 / TICKS_PER_S));
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
    SystemTime::now().checked_sub(uptime.checked_sub(since_boot)?)
}
