//! A recording of this process while a block of code runs.
//!
//! Its begin and end are marked by a block of an odd size each, allocated by the calling thread.
//! Times in a trace are in the order of calls: blocks before the first mark or after the second are
//! not counted.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{PTracer, set_ptracer};
use rustix::thread::gettid;
use serde_json::Value;

use crate::program::{ask, ask_json};
use crate::{Error, Result};

/// Held during a recording: a process can be in one session only.
static ACTIVE: Mutex<()> = Mutex::new(());
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Sizes of the blocks that mark begin and end; a number for each recording is added.
const MARKS: [usize; 2] = [1_300_021, 1_700_021];
/// Options for the number of stacks and frames shown.
const SHOWN: [&str; 4] = ["--top", "5", "--depth", "8"];

/// Allocations made while a block of code ran.
#[derive(Debug)]
pub struct Recording {
    _folder: tempfile::TempDir,
    file: PathBuf,
    /// Options of `heapr report` that select the recording's time and thread.
    options: Vec<String>,
}

impl Recording {
    /// Records the allocations of the calling thread in `work`.
    ///
    /// # Errors
    /// Fails if heapr cannot be run or cannot attach.
    pub fn of_thread<T>(work: impl FnOnce() -> T) -> Result<(T, Self)> {
        let thread = gettid().as_raw_nonzero();
        Self::record(work, vec!["--thread".to_owned(), thread.to_string()])
    }

    /// Records the allocations of all threads while `work` runs.
    ///
    /// # Errors
    /// Fails if heapr cannot be run or cannot attach.
    pub fn of_process<T>(work: impl FnOnce() -> T) -> Result<(T, Self)> {
        Self::record(work, Vec::new())
    }

    fn record<T>(work: impl FnOnce() -> T, mut options: Vec<String>) -> Result<(T, Self)> {
        let _alone = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = std::process::id().to_string();
        let name = format!("test-{own}-{number}");
        let folder = tempfile::tempdir().map_err(Error::Folder)?;
        let file = folder.path().join("test.heapr");
        let marks = MARKS.map(|bytes| bytes + 2 * (number as usize % 10_000));
        // With Yama's scope 1 only an ancestor may attach, and heapr is a child. On other systems
        // the call is not needed.
        let _ = set_ptracer(PTracer::Any);
        let started = ask(["start", &name, "--quiet", "--no-follow", "--pid", &own, "-o"]
            .map(std::ffi::OsString::from)
            .into_iter()
            .chain([file.clone().into_os_string()]));
        let outcome = started.and_then(|_| {
            // Ends the session even if `work` panics.
            let session = Ended(&name);
            mark(marks[0]);
            let value = work();
            mark(marks[1]);
            session.end().map(|()| value)
        });
        let _ = set_ptracer(PTracer::None);
        let value = outcome?;
        let times = [time_of(&file, marks[0])?, time_of(&file, marks[1])?];
        options.extend(["--range".to_owned(), format!("{}ns", times[0] + 1), format!("{}ns", times[1])]);
        Ok((value, Self { _folder: folder, file, options }))
    }

    /// Most bytes that were live at once, of those allocated inside.
    ///
    /// # Errors
    /// Fails if heapr cannot read its file.
    pub fn peak_bytes(&self) -> Result<u64> {
        self.total("peak_bytes")
    }

    /// Bytes allocated inside and not freed inside.
    ///
    /// # Errors
    /// Fails if heapr cannot read its file.
    pub fn left_bytes(&self) -> Result<u64> {
        self.total("outstanding_bytes")
    }

    /// Number of calls that allocated.
    ///
    /// # Errors
    /// Fails if heapr cannot read its file.
    pub fn allocation_count(&self) -> Result<u64> {
        self.total("alloc_count")
    }

    /// Largest stacks, as `heapr report` prints them; `sort` is one of its keys: `peak` or `so`.
    ///
    /// # Errors
    /// Fails if heapr cannot read its file.
    pub fn stacks(&self, sort: &str) -> Result<String> {
        let text = ask(self.question(&["--stacks", sort]).into_iter().chain(SHOWN.map(str::to_owned)))?;
        // Text above the ranking is about the whole file.
        Ok(text.split_once("STACKS").map(|(_, ranking)| format!("STACKS{ranking}")).unwrap_or(text))
    }

    /// Number of stacks that have left at least `blocks` blocks.
    pub(crate) fn stacks_left_at_least(&self, blocks: u64) -> Result<usize> {
        let answer = ask_json(self.question(&["--stacks", "soc"]))?;
        let groups = answer["groups"].as_array().ok_or(Error::Answer { missing: "groups" })?;
        let left = |group: &&Value| group["outstanding_count"].as_u64().is_some_and(|count| count >= blocks);
        Ok(groups.iter().filter(left).count())
    }

    fn total(&self, key: &'static str) -> Result<u64> {
        let answer = ask_json(self.question(&["--totals"]))?;
        answer["totals"][key].as_u64().ok_or(Error::Answer { missing: key })
    }

    fn question(&self, more: &[&str]) -> Vec<String> {
        let mut words = vec!["report".to_owned(), self.file.display().to_string()];
        words.extend(self.options.iter().cloned());
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    }
}

/// A session that is cancelled on drop, also by a panic.
struct Ended<'a>(&'a str);

impl Ended<'_> {
    fn end(self) -> Result<()> {
        let name = self.0;
        std::mem::forget(self);
        ask(["stop", name]).map(drop)
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = ask(["cancel", self.0]);
    }
}

fn mark(bytes: usize) {
    drop(black_box(Vec::<u8>::with_capacity(black_box(bytes))));
}

fn time_of(file: &std::path::Path, bytes: usize) -> Result<u64> {
    let words = [file.display().to_string(), "--size".to_owned(), bytes.to_string(), (bytes + 1).to_string()];
    let words = std::iter::once("report".to_owned()).chain(words).chain(["--totals".to_owned()]);
    let totals = &ask_json(words)?["totals"];
    match totals["alloc_count"].as_u64() {
        Some(1) => totals["peak_time_ns"].as_u64().ok_or(Error::Answer { missing: "peak_time_ns" }),
        _ => Err(Error::Answer { missing: "begin or end of what was recorded" }),
    }
}
