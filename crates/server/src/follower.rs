//! Thread that follows a session. It polls the status once a second, and reads the growth of the
//! file while a client asks for it. At the session's end it keeps the final state.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use heapr_explore::TableLimit;
use heapr_query::RecordedSpan;
use heapr_session::{ClientError, Request, SessionStatus, Update};
use heapr_trace::Trace;

use crate::cancel::Cancel;
use crate::entry::Entry;
use crate::error::Error;
use crate::host::Host;
use crate::session::{RunningSession, SessionStage};
use crate::trace_file::{Growth, Identity, TraceFile};

/// Interval between two status requests.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Divisor of the share of time that reading the file and adding up may take.
const SHARE_OF_TIME: u32 = 4;
/// Time for which the file's path is watched after the end, as the file may be moved.
const MOVE_PATIENCE: Duration = Duration::from_secs(5);

/// Settings for reading traces.
pub(crate) struct Reading {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) limit: TableLimit,
}

/// Starts a thread that follows the session until its end, or until the entry is dropped.
pub(crate) fn start(entry: Weak<Entry>, session: Arc<RunningSession>, reading: Reading) {
    std::thread::spawn(move || {
        let Some(path) = entry.upgrade().map(|entry| entry.path()) else { return };
        let mut follower = Follower {
            entry,
            session,
            reading,
            path,
            file: None,
            is_empty: true,
            shown: None,
            last: Weak::new(),
            growth: Arc::default(),
        };
        follower.run();
    });
}

/// Event count, marker count and file size that a reading covers; equal values mean no news.
type Shown = (u64, u64, u64);

struct Follower {
    entry: Weak<Entry>,
    session: Arc<RunningSession>,
    reading: Reading,
    path: PathBuf,
    /// The file, held open from the start as it may be renamed or removed.
    file: Option<File>,
    /// Whether no state could be shown yet.
    is_empty: bool,
    shown: Option<Shown>,
    /// The state that is shown; its sums are computed after its reading.
    last: Weak<TraceFile>,
    /// Events that were read already.
    growth: Arc<Growth>,
}

impl Follower {
    fn run(&mut self) {
        // End of the last reading, and its duration.
        let (mut read, mut took) = (Instant::now(), Duration::ZERO);
        loop {
            if self.entry.strong_count() == 0 {
                return;
            }
            match self.session.look() {
                Ok(status) => {
                    if self.is_time(read, took) && self.is_wanted(&status) {
                        let start = Instant::now();
                        match self.read_again(&status) {
                            Ok(()) => self.shown = Some(newness(&status)),
                            Err(trouble) => self.session.note_trouble(trouble),
                        }
                        (read, took) = (Instant::now(), start.elapsed());
                    }
                }
                Err(ClientError::NoSuchSession { .. }) => return self.end(),
                Err(error) => self.session.note_trouble(error.to_string()),
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Whether the last reading is added up, and long enough ago for its share of time.
    fn is_time(&self, read: Instant, took: Duration) -> bool {
        // A state without holders needs no sums.
        let added_up = self.last.upgrade().map_or(Some(Duration::ZERO), |file| file.adding_up_took());
        added_up.is_some_and(|added_up| read.elapsed() >= added_up + (took + added_up) * (SHARE_OF_TIME - 1))
    }

    fn is_wanted(&self, status: &SessionStatus) -> bool {
        self.shown.is_none() || (self.shown != Some(newness(status)) && self.session.take_interest())
    }

    /// Makes the recorder write its data out, and shows the new state.
    fn read_again(&mut self, status: &SessionStatus) -> Result<(), String> {
        let update = Update { flush: true, ..Update::default() };
        self.session.ask(Request::Update(update)).map_err(|error| error.to_string())?;
        self.take_next_file();
        let file = match self.file.take() {
            Some(file) => file,
            None => heapr_files::regular(&self.path)
                .map_err(|error| format!("{}: {error}", self.path.display()))?,
        };
        let file = self.file.insert(file);
        let trace = open(file).map_err(|error| error.to_string())?;
        let until_ns = trace.duration_ns().max(status.duration_ns);
        self.show(trace, until_ns)
    }

    /// Switches to the next file of a session that writes files in turn.
    fn take_next_file(&mut self) {
        let is_another = self.file.as_ref().is_some_and(|file| {
            let (open, there) = (identity(file).ok(), Identity::of(&self.path).ok());
            open.zip(there).is_some_and(|(open, there)| !open.is_same_file(&there))
        });
        if is_another && Trace::open(&self.path).is_ok_and(|trace| RecordedSpan::of(&trace).is_next_file) {
            self.file = None;
            self.growth = Arc::default();
        }
    }

    /// Reads the additions to a trace while the old state is shown, then shows the new one.
    fn show(&mut self, trace: Trace, until_ns: u64) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let identity = identity(file).map_err(|error| error.to_string())?;
        let path = self.path.clone();
        let (host, growth) = (Arc::clone(&self.reading.host), Arc::clone(&self.growth));
        let trace = trace.with_language_frames(host.language_frames());
        let trace = TraceFile::open(&path, trace, host, self.reading.limit, Some(growth));
        // The first state is shown at once, with its reading in progress.
        if !self.is_empty {
            let never = Cancel::default();
            let text = |error: Error| error.to_string();
            trace.wait_for_names(&never).map_err(text)?;
            trace.wait_for_events(&never).map_err(text)?;
        }
        let Some(entry) = self.entry.upgrade() else { return Ok(()) };
        self.growth.note_shown(&trace);
        self.last = Arc::downgrade(&trace);
        entry.show(path, identity, trace);
        self.session.note_shown(until_ns);
        self.is_empty = false;
        Ok(())
    }

    /// Shows the final state after the recorder has ended.
    fn end(&mut self) {
        self.take_next_file();
        if self.file.is_none() {
            self.file = heapr_files::regular(&self.path).ok();
        }
        let Some(file) = &self.file else {
            if let Some(entry) = self.entry.upgrade() {
                entry.fail(format!(
                    "the session has ended, and its file {} is not there",
                    self.path.display()
                ));
            }
            return self.session.note_end(SessionStage::Cancelled);
        };
        self.path = name_of(file).unwrap_or_else(|| self.path.clone());
        let is_there = file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
        let opened = open(file);
        let stage = match &opened {
            _ if !is_there => SessionStage::Cancelled,
            Ok(trace) if trace.is_complete() => SessionStage::Ended,
            _ => SessionStage::Lost,
        };
        match opened {
            // A cancelled session completes the file, too, before removing it.
            Ok(trace) => {
                let until_ns = trace.duration_ns();
                if let Err(trouble) = self.show(trace, until_ns) {
                    self.session.note_trouble(trouble);
                }
            }
            Err(error) if self.is_empty => {
                if let Some(entry) = self.entry.upgrade() {
                    entry.fail(error.to_string());
                }
            }
            _ => {}
        }
        self.session.note_end(stage);
        // `heapr stop -o FILE` moves the file after the recorder has ended.
        let until = Instant::now() + MOVE_PATIENCE;
        while Instant::now() < until {
            let Some(entry) = self.entry.upgrade() else { return };
            if let Some(path) = self.file.as_ref().and_then(name_of)
                && path != self.path
            {
                self.path.clone_from(&path);
                entry.moved(path);
            }
            drop(entry);
            std::thread::sleep(LOOK_INTERVAL / 4);
        }
    }
}

fn newness(status: &SessionStatus) -> Shown {
    (status.event_count, status.marker_count, status.file_bytes)
}

fn open(file: &File) -> heapr_trace::Result<Trace> {
    let source = file.try_clone();
    let source = source.map_err(|source| heapr_trace::Error::Io { action: "opening the file", source })?;
    Trace::from_source(Box::new(source))
}

fn identity(file: &File) -> std::io::Result<Identity> {
    Ok(Identity::of_metadata(&file.metadata()?))
}

/// Present path of an open file; `None` if the file has no name any more.
fn name_of(file: &File) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(link).ok()?;
    let is_it = |path: &Path| {
        let (one, other) = (Identity::of(path).ok(), identity(file).ok());
        one.zip(other).is_some_and(|(one, other)| one.is_same_file(&other))
    };
    is_it(&path).then_some(path)
}
