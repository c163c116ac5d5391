//! Recordings of started programs and attached processes, and snapshots.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::commands::{Commands, shortened};
use crate::{Error, Result};

/// Largest size of a recording's file, in bytes; it bounds recordings that an agent forgets.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Starts and ends recordings, and tracks the running ones.
#[derive(Debug)]
pub(crate) struct Recordings {
    commands: Commands,
    folder: PathBuf,
    next: AtomicU64,
    /// Names of running sessions.
    running: Mutex<Vec<String>>,
}

impl Recordings {
    /// Creates recordings in `folder`.
    pub(crate) fn new(commands: Commands, folder: PathBuf) -> Self {
        Self { commands, folder, next: AtomicU64::new(1), running: Mutex::default() }
    }

    fn new_file(&self, what: &str) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{what}.{number}.heapr"))
    }

    /// Runs a program to its end, for at most `seconds`. Returns the trace, and the last lines that
    /// the program printed.
    pub(crate) async fn run(
        &self,
        program: &[&str],
        folder: Option<&Path>,
        seconds: u64,
    ) -> Result<(PathBuf, String)> {
        let file = self.new_file("run");
        let mut words: Vec<OsString> =
            vec!["run".into(), "--quiet".into(), "--max-file".into(), FILE_BYTES_MAX.to_string().into()];
        words.extend(["-o".into(), file.clone().into_os_string(), "--".into()]);
        words.extend(program.iter().map(OsString::from));
        let output = self.commands.run_for(words, folder, seconds).await?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        if !file.is_file() {
            return Err(Error::Refused(shortened(said)));
        }
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Ok((file, format!("{}\n{}", output.status, last.join("\n"))))
    }

    /// Records a process for `seconds`.
    pub(crate) async fn attach(&self, pid: u64, seconds: u64, with_children: bool) -> Result<PathBuf> {
        let file = self.new_file(&format!("pid-{pid}"));
        let name = format!("mcp-{}-{}", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed));
        let mut words: Vec<OsString> =
            vec!["start".into(), name.clone().into(), "--pid".into(), pid.to_string().into()];
        if with_children {
            words.push("--tree".into());
        }
        words.extend([
            "--max-file".into(),
            FILE_BYTES_MAX.to_string().into(),
            "-o".into(),
            file.clone().into(),
        ]);
        self.with_running(|running| running.push(name.clone()));
        let begun = self.commands.run(words, 120).await;
        if begun.is_ok() {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let ended = self.commands.run(["stop", &name], 120).await;
            self.with_running(|running| running.retain(|other| *other != name));
            ended?;
        }
        self.with_running(|running| running.retain(|other| *other != name));
        begun.map(|_| file)
    }

    /// Takes a snapshot, and returns its files.
    pub(crate) async fn snapshot(&self, pid: u64) -> Result<Vec<PathBuf>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("snapshot.{number}"));
        std::fs::create_dir_all(&folder).map_err(Error::Run)?;
        let inside = folder.join(format!("pid-{pid}.{number}.heapr"));
        // Snapshots of JavaScript and Python go into the folder under heapr's file names; a native
        // one needs a file name.
        let javascript: Vec<OsString> = vec![
            "snapshot".into(),
            "take".into(),
            pid.to_string().into(),
            "-o".into(),
            folder.clone().into(),
        ];
        let mut native = javascript.clone();
        native.pop();
        native.push(inside.clone().into());
        if let Err(first) = self.commands.run(javascript, 600).await {
            self.commands.run(native, 600).await.map_err(|_| first)?;
            // The process began to answer as a JavaScript program only at the second call.
            if begins_as_json(&inside) {
                std::fs::rename(&inside, inside.with_extension("heapsnapshot")).map_err(Error::Run)?;
            }
        }
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&folder).map_err(Error::Run)?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        Ok(files)
    }

    /// Ends all running sessions, and detaches from their processes.
    pub(crate) async fn end_all(&self) {
        let names = self.with_running(std::mem::take);
        for name in names {
            let _ = self.commands.run(["stop", &name], 120).await;
        }
    }

    fn with_running<T>(&self, change: impl FnOnce(&mut Vec<String>) -> T) -> T {
        change(&mut self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Whether a file begins as a V8 snapshot does.
fn begins_as_json(path: &Path) -> bool {
    let mut first = [0];
    heapr_files::regular(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"{"
}
