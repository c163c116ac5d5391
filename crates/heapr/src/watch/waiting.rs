//! Waiting for notices: signals, ends of processes, groups, the kernel's log, the recorder's end.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::kills::Kills;
use super::recorder::Recorder;
use super::watched_group::WatchedGroup;
use super::watched_process::WatchedProcess;

/// Signals that end the watch.
#[derive(Debug)]
pub(super) struct Signals {
    come: UnixStream,
    is_handed_over: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to catch the signals.
    ///
    /// # Errors
    /// The operating system's error.
    pub(super) fn catch() -> anyhow::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let is_handed_over = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&is_handed_over))?;
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGUSR1] {
            signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
        }
        ours.set_nonblocking(true)?;
        Ok(Self { come: ours, is_handed_over })
    }

    /// True if the watch ends for another one, which goes on with the recorder and the journal.
    pub(super) fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    fn has_come(&mut self) -> bool {
        self.come.read(&mut [0; 16]).is_ok_and(|read| read > 0)
    }
}

/// Subject of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Signal,
    Log,
    Recorder,
    Group(usize),
    Process(usize),
}

/// Notices that have come.
#[derive(Debug, Default)]
pub(super) struct Woken {
    pub(super) is_told_to_end: bool,
    pub(super) has_recorder_ended: bool,
    /// Places of groups with notices.
    pub(super) groups: Vec<usize>,
    /// Places of processes that have ended.
    pub(super) ended: Vec<usize>,
}

/// Waits for notices, for at most `pause`.
///
/// # Errors
/// The operating system's error.
pub(super) fn wait(
    signals: &mut Signals,
    kills: &Kills,
    recorder: Option<&Recorder>,
    groups: &[WatchedGroup],
    processes: &[WatchedProcess],
    pause: Duration,
) -> anyhow::Result<Woken> {
    let mut asked: Vec<(Subject, BorrowedFd<'_>, PollFlags)> =
        vec![(Subject::Signal, signals.come.as_fd(), PollFlags::IN)];
    asked.extend(kills.file().map(|log| (Subject::Log, log.as_fd(), PollFlags::IN)));
    let life = recorder.and_then(|recorder| recorder.life.as_ref());
    asked.extend(life.map(|life| (Subject::Recorder, life.as_fd(), PollFlags::IN)));
    let now = Instant::now();
    let mut pause = pause;
    for (place, group) in groups.iter().enumerate() {
        if let Some(left) = group.quiet_until.checked_duration_since(now).filter(|left| !left.is_zero()) {
            pause = pause.min(left);
            continue;
        }
        let descriptors = group.notices.iter().flat_map(heapr_incident::Notices::descriptors);
        asked.extend(descriptors.map(|(descriptor, flags)| (Subject::Group(place), descriptor, flags)));
    }
    for (place, process) in processes.iter().enumerate() {
        asked.extend(process.life().map(|life| (Subject::Process(place), life, PollFlags::IN)));
    }
    let mut polled: Vec<PollFd<'_>> =
        asked.iter().map(|(_, descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
    let pause = Timespec {
        tv_sec: i64::try_from(pause.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: pause.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&pause)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut woken = Woken::default();
    let came = asked.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
    for ((subject, ..), _) in came {
        match *subject {
            Subject::Signal | Subject::Log => {}
            Subject::Recorder => woken.has_recorder_ended = true,
            Subject::Group(place) => woken.groups.push(place),
            Subject::Process(place) => woken.ended.push(place),
        }
    }
    drop((asked, polled));
    woken.groups.dedup();
    woken.is_told_to_end = signals.has_come();
    Ok(woken)
}
