//! Prepares flagged programs before their first instruction: each exec on this machine is held
//! until it is known whether the program is flagged.
//!
//! ```text
//! reader (one thread): exec event --not flagged--> allowed at once
//!                                 --flagged------> a separate thread: seize, allow, wait for the
//!                                                  new image, check the flags again, add agent and
//!                                                  session to its environment, let go;
//!                                                  or, where that would not help, attach when its
//!                                                  loader is done
//! ```
//!
//! No exec waits for long: a process that is not seized within [`seize_limit`] is allowed all the
//! same. It is found by the next sample of all processes (`flag_watch`), like every program that
//! starts from a filesystem that is not watched. When this process dies, the kernel allows all
//! waiting execs and releases all seized processes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heapr_inject::{ExecArgument, ExecWatch, HeldExec, Preparation, Started};
use heapr_proc::{Fields, inner_pid, start_ticks};

use crate::attach::{AttachOutcome, Preload, attach_target};
use crate::flags::flag_cache::FlagCache;
use crate::flags::flag_target::{FlagTarget, ProcessFacts, control_group};
use crate::flags::watched_filesystems::{loaders, mount_points};
use crate::flags::{FlagKind, Flags};
use crate::recorder::facts::system_facts::kernel_version;
use crate::recorder::facts::target_view::finds_session;

/// Longest wait for a seize, which needs a lock of the waiting process. From [`LOCK_IS_FREE`] on
/// the lock is free, and only our own turn on a busy machine takes time. Before, the lock may stay
/// taken until the exec goes on, and waiting is in vain.
const SEIZE_LIMIT: Duration = Duration::from_secs(1);
const SEIZE_LIMIT_BEFORE: Duration = Duration::from_millis(50);
const LOCK_IS_FREE: (u32, u32) = (6, 8);
/// Longest time for which a flagged program's exec waits.
fn seize_limit() -> Duration {
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let is_free = kernel_version().is_some_and(|version| version >= LOCK_IS_FREE);
        if is_free { SEIZE_LIMIT } else { SEIZE_LIMIT_BEFORE }
    })
}

/// Longest time from the answer to the new image: the kernel reads a few pages of it.
const EXEC_LIMIT: Duration = Duration::from_secs(2);
/// Longest time for which a loader reads libraries and binds them.
const LOAD_LIMIT: Duration = Duration::from_secs(2);
/// Longest time for which all execs wait for a thread to fall asleep after its request. It does so
/// within microseconds where processors are free. Otherwise a separate thread waits for it.
const NAME_LIMIT: Duration = Duration::from_millis(1);
/// Longest sleep of the reader.
const ROUND: Duration = Duration::from_millis(20);
/// Interval at which newly mounted filesystems are looked for.
const MARK_EVERY: Duration = Duration::from_secs(2);
/// Largest number of programs that are prepared at once; further ones are allowed at once.
const TOGETHER_MAX: usize = 64;

/// Outcome for a flagged program.
#[derive(Debug)]
pub(crate) enum News {
    /// Program will load the agent.
    Prepared(u32),
    /// Program loads the agent anyhow, as the child of a recorded one.
    Inherited(u32),
    /// Program was attached to before its own code ran.
    Attached(u32, Box<AttachOutcome>),
    /// Program must be attached to while it runs; with the obstacle before.
    Unprepared(u32, Option<String>),
    /// Exec has failed, or the program is not flagged after all.
    Settled,
    /// Watch has ended.
    Ended(String),
}

/// Handle of the watch, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ExecGuard {
    news: Receiver<News>,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    kind: FlagKind,
    preload: Preload,
    is_over: AtomicBool,
    /// Threads whose exec is being handled: the applicable flags, and the exec event while it is
    /// open.
    open: Mutex<HashMap<u32, Open>>,
    news: Sender<News>,
}

#[derive(Debug)]
struct Open {
    question: Option<Started>,
    since: Instant,
    flags: Arc<Flags>,
}

impl ExecGuard {
    /// Starts the watch.
    ///
    /// # Errors
    /// Not permitted, or not possible with this kernel.
    pub(crate) fn start(kind: FlagKind, preload: Preload) -> std::io::Result<Self> {
        let (sender, news) = mpsc::channel();
        // The threads that attach pass this descriptor on.
        let keep = [preload.pool];
        let shared = Arc::new(Shared {
            kind,
            preload,
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
            news: sender,
        });
        let for_reader = Arc::clone(&shared);
        let (begun, has_begun) = mpsc::channel();
        let reader = ExecWatch::in_thread(&keep, move |watch| {
            let mut marks = Marks::default();
            let watch = watch.and_then(|watch| marks.renew(&watch).map(|()| watch));
            match watch {
                Ok(watch) if begun.send(Ok(())).is_ok() => for_reader.read(watch, marks),
                Ok(_) => {}
                Err(error) => drop(begun.send(Err(error))),
            }
        })?;
        has_begun.recv().unwrap_or_else(|_| Err(std::io::Error::other("its thread has ended")))?;
        Ok(Self { news, shared, reader: Some(reader) })
    }

    /// Returns the outcomes since the last call.
    pub(crate) fn news(&self) -> Vec<News> {
        self.news.try_iter().collect()
    }

    /// Whether a process is being handled.
    pub(crate) fn is_at(&self, pid: u32) -> bool {
        self.shared.open().contains_key(&pid)
    }
}

impl Drop for ExecGuard {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Filesystems that are watched.
#[derive(Debug, Default)]
struct Marks {
    devices: Vec<String>,
    next: Option<Instant>,
}

impl Marks {
    fn renew(&mut self, watch: &ExecWatch) -> std::io::Result<()> {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        self.next = Some(Instant::now() + MARK_EVERY);
        let mut outcome = Ok(());
        let mount_points = mount_points();
        self.devices.retain(|device| mount_points.iter().any(|(other, _)| other == device));
        for (device, path) in mount_points {
            if self.devices.contains(&device) {
                continue;
            }
            match watch.watch(&path) {
                Ok(()) => self.devices.push(device),
                Err(error) => outcome = Err(error),
            }
        }
        if self.devices.is_empty() {
            return outcome;
        }
        // Each program opens its loader too; that event says nothing new.
        for loader in loaders() {
            let _ = watch.ignore(&loader);
        }
        Ok(())
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<u32, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: News) {
        // The receiver is gone once the session ends.
        let _ = self.news.send(news);
    }

    fn read(self: Arc<Self>, mut watch: ExecWatch, mut marks: Marks) {
        let mut cache = FlagCache::default();
        let mut flags = Arc::new(Flags::default());
        while !self.is_over.load(Relaxed) {
            let started = match watch.next(ROUND) {
                Ok(started) => started,
                Err(error) => return self.tell(News::Ended(error.to_string())),
            };
            if let Some(started) = started {
                if cache.is_changed() {
                    flags = Arc::new(cache.current().clone());
                }
                self.answer(started, &flags);
            }
            self.allow_overdue();
            let _ = marks.renew(&watch);
        }
    }

    /// Allows execs that have waited for too long.
    fn allow_overdue(&self) {
        let limit = seize_limit();
        for open in self.open().values_mut() {
            if open.since.elapsed() > limit {
                open.question = None;
            }
        }
    }

    fn answer(self: &Arc<Self>, started: Started, flags: &Arc<Flags>) {
        let tid = started.tid;
        let candidate = candidate(&started, flags, self.kind, NAME_LIMIT);
        if candidate == Candidate::No {
            return started.allow();
        }
        let Some(pid) = process_of(tid) else { return started.allow() };
        let mut open = self.open();
        // Opening of the interpreter of a program that is being handled, or too many programs.
        if pid == std::process::id() || open.contains_key(&pid) || open.len() >= TOGETHER_MAX {
            drop(open);
            return started.allow();
        }
        let flags = Arc::clone(flags);
        let entry = Open { question: Some(started), since: Instant::now(), flags };
        open.insert(pid, entry);
        drop(open);
        let shared = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("exec-prepare".to_owned()).spawn(move || {
            let is_flagged = candidate == Candidate::Yes || shared.is_flagged(pid);
            let news = if is_flagged { shared.prepare(pid, tid) } else { News::Settled };
            shared.tell(news);
            // After the outcome is sent: the sample of all processes skips a process with either.
            shared.open().remove(&pid);
        });
        if spawned.is_err() {
            self.open().remove(&pid);
        }
    }

    /// Waits until it is known whether a possibly flagged program is flagged. The program is not
    /// seized before, since another session may have to seize it.
    fn is_flagged(&self, pid: u32) -> bool {
        /// Pause between two checks: the program needs a turn on the processor first.
        const PATIENCE: Duration = Duration::from_micros(200);
        loop {
            {
                let open = self.open();
                let Some(Open { question: Some(started), flags, .. }) = open.get(&pid) else { return false };
                match candidate(started, flags, self.kind, Duration::ZERO) {
                    Candidate::Perhaps => {}
                    known => return known == Candidate::Yes,
                }
            }
            std::thread::sleep(PATIENCE);
        }
    }

    fn prepare(&self, pid: u32, tid: u32) -> News {
        let held = HeldExec::seize(pid, tid);
        let flags = {
            let mut open = self.open();
            let Some(open) = open.get_mut(&pid) else { return News::Settled };
            // The exec is allowed from here on.
            open.question = None;
            Arc::clone(&open.flags)
        };
        // A debugger holds the process, or it has ended; the sample of all processes reports a
        // flagged one.
        let mut held = match held {
            Ok(held) => held,
            Err(error) => return News::Unprepared(pid, Some(error.to_string())),
        };
        if !held.wait_for_exec(EXEC_LIMIT).unwrap_or(false) {
            return News::Settled;
        }
        let Some(mut facts) = ProcessFacts::of(pid) else { return News::Settled };
        if let Some(name) = held.started_as() {
            facts.started_as = file_name(Path::new(OsStr::from_bytes(&name)));
        }
        if flags.matches(&facts) != Some(self.kind) {
            return News::Settled;
        }
        if finds_session(pid, &self.preload.agent) {
            let session = format!("{}:{}", self.preload.session, inner_pid(pid));
            let agent = self.preload.agent.as_os_str().as_bytes();
            match held.preload(agent, ("HEAPR_SESSION", session.as_bytes())) {
                Ok(Preparation::Done) => return News::Prepared(pid),
                Ok(Preparation::Inherited) => return News::Inherited(pid),
                Ok(Preparation::Static) => return News::Unprepared(pid, None),
                Ok(Preparation::Privileged | Preparation::Filtered | Preparation::NoRoom) | Err(_) => {}
            }
        }
        // The program has another user, another namespace, or more rights than its parent: attached
        // to when its loader is done.
        match held.run_loader(LOAD_LIMIT) {
            Ok(true) => {}
            Ok(false) => return News::Unprepared(pid, None),
            Err(error) => return News::Unprepared(pid, Some(error.to_string())),
        }
        match attach_target(&self.preload, pid, Some(held), None) {
            Ok(outcome) => News::Attached(pid, Box::new(outcome)),
            Err(error) => News::Unprepared(pid, Some(error.to_string())),
        }
    }
}

/// Whether a program that is about to start is flagged, as far as it is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidate {
    No,
    /// Name by which the program is started cannot be read yet.
    Perhaps,
    Yes,
}

/// Checks whether a flag fits the program that a thread is about to exec. The name by which it is
/// started counts too. Only facts that the flags need are read, because every exec waits for this.
fn candidate(started: &Started, flags: &Flags, kind: FlagKind, name_limit: Duration) -> Candidate {
    if flags.all().is_empty() {
        return Candidate::No;
    }
    let has = |fits: fn(&FlagTarget) -> bool| flags.all().iter().any(|flag| fits(&flag.target));
    let has_names = has(|target| matches!(target, FlagTarget::Name(_)));
    let has_pids = has(|target| matches!(target, FlagTarget::Pid { .. }));
    let has_groups = has(|target| !matches!(target, FlagTarget::Name(_) | FlagTarget::Pid { .. }));
    let mut facts = ProcessFacts { executable: started.executable.clone(), ..ProcessFacts::default() };
    if has_pids {
        facts.pid = process_of(started.tid).unwrap_or(started.tid);
        facts.start_ticks = start_ticks(facts.pid).unwrap_or_default();
    }
    if has_groups {
        facts.control_group = control_group(started.tid).unwrap_or_default();
    }
    if has_names {
        match heapr_inject::exec_argument(started.tid, name_limit) {
            ExecArgument::Path(path) => facts.started_as = file_name(&path),
            ExecArgument::Running => return Candidate::Perhaps,
            ExecArgument::Unknown => {}
        }
    }
    if flags.matches(&facts) == Some(kind) {
        return Candidate::Yes;
    }
    let Some(interpreter) = started.interpreter() else { return Candidate::No };
    // In another mount namespace the links may lead elsewhere; then the name is the next best.
    facts.executable = interpreter.canonicalize().unwrap_or(interpreter);
    if flags.matches(&facts) == Some(kind) { Candidate::Yes } else { Candidate::No }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the process of a thread.
fn process_of(tid: u32) -> Option<u32> {
    Fields::of_process(tid).ok()?.number("Tgid")
}
