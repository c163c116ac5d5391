//! Attaches and detaches in a separate thread: both wait for the target, while the rounds of the
//! recorder continue.
//!
//! ```text
//! worker  --job-->  thread: attach or detach, one after the other
//!         <--done--
//! ```
//!
//! The recorder holds back what a process writes until its attach is complete: its earlier blocks
//! come first.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};

use heapr_inject::DetachReport;

use crate::Error;
use crate::attach::{AttachOutcome, Preload, attach_target};
use crate::bell::{Bell, Letterbox};

/// Job for a process.
#[derive(Debug)]
pub(crate) enum Job {
    Attach { pid: u32, preload: Preload },
    Detach { pid: u32 },
}

/// Result of a job.
#[derive(Debug)]
pub(crate) enum Done {
    Attached { pid: u32, outcome: Result<Box<AttachOutcome>, Error> },
    Detached { pid: u32, outcome: Result<DetachReport, Error> },
}

/// Handle of the thread, with the purpose of each job.
#[derive(Debug)]
pub(crate) struct TargetThread<P> {
    jobs: Sender<(u64, Job)>,
    done: Receiver<(u64, Done)>,
    next: u64,
    purposes: HashMap<u64, (u32, P)>,
}

impl<P> TargetThread<P> {
    /// Starts the thread. It ends when this is dropped and its job is done.
    pub(crate) fn start(bell: Bell) -> std::io::Result<Self> {
        let (jobs, orders) = mpsc::channel::<(u64, Job)>();
        let (answers, done) = mpsc::channel();
        let answers = Letterbox::new(answers, bell);
        std::thread::Builder::new().name("heapr-attach".to_owned()).spawn(move || {
            for (ticket, job) in orders {
                if answers.send((ticket, job.run())).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs, done, next: 0, purposes: HashMap::new() })
    }

    /// Submits a job with its purpose.
    pub(crate) fn push(&mut self, job: Job, purpose: P) {
        let pid = match job {
            Job::Attach { pid, .. } | Job::Detach { pid } => pid,
        };
        self.next += 1;
        if self.jobs.send((self.next, job)).is_ok() {
            self.purposes.insert(self.next, (pid, purpose));
        }
    }

    /// Takes a job that was finished since the last call.
    pub(crate) fn take_done(&mut self) -> Option<(P, Done)> {
        let (ticket, done) = self.done.try_recv().ok()?;
        let (_, purpose) = self.purposes.remove(&ticket)?;
        Some((purpose, done))
    }

    /// Whether any job is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.purposes.is_empty()
    }

    /// Whether a job for a process is under way or waits.
    pub(crate) fn is_at(&self, pid: u32) -> bool {
        self.purposes.values().any(|(at, _)| *at == pid)
    }
}

impl Job {
    /// Runs the job in the calling thread.
    pub(crate) fn run(self) -> Done {
        match self {
            Self::Attach { pid, preload } => {
                Done::Attached { pid, outcome: attach_target(&preload, pid, None, None).map(Box::new) }
            }
            Self::Detach { pid } => {
                // Threads that wait for a buffer get one, because the rounds continue.
                let outcome = heapr_inject::detach(pid, &mut || ()).map_err(Error::from);
                Done::Detached { pid, outcome }
            }
        }
    }
}
