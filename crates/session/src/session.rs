//! A session from start to stop.

mod opening;
mod requests;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use heapr_allocators::Sought;
use heapr_ring::{Pool, reader};
use heapr_trace::Summary;

use self::opening::{check_memory, describe, open_pool, unix_ns};
use crate::agent_file::{agent_file, preload_with};
use crate::bell::{Bell, Letterbox};
use crate::exec_hold_threads::ExecHolds;
use crate::recorder::Recorder;
use crate::recorder::inside::Watch;
use crate::recorder::intake::clock::{Clock, ClockSource};
use crate::recorder::intake::pool_growth::{self, PoolGrowth};
use crate::recorder::names::made_code::HeldMadeCode;
use crate::recorder::names::module_files::HeldModule;
use crate::recorder::output::sink::Sink;
use crate::recorder::rounds::spare_time::SpareTime;
use crate::recorder::state::statistics::Statistics;
use crate::snapshots::native_snapshot::SnapshotReport;
use crate::{Error, SampleRate, SessionProperties};

/// Longest sleep between two rounds while events come. At 20 million events a second 20 ms are some
/// 150 buffers of 64 KiB. Half of the pool being claimed wakes the recorder anyway. 5 ms took 15 %
/// more of the recorder's processor time on redis and 40 times as many task switches.
const ROUND_BUSY: Duration = Duration::from_millis(20);
/// Longest sleep while no events come: a full pool wakes the recorder before.
const ROUND_IDLE: Duration = Duration::from_millis(20);
/// Longest sleep in a sampling session, which gets few events.
const ROUND_SAMPLED: Duration = Duration::from_millis(50);
/// Longest sleep of a sampling session with hardly any events, which is woken for requests.
/// Measured with ten processes and 300 events a second. A woken recorder finds all its caches cold,
/// so that a round takes 0.3 to 0.7 ms. At five rounds a second these were two thirds of its time.
const ROUND_CALM: Duration = Duration::from_millis(500);
/// Longest sleep of such a session after [`ASLEEP_ROUNDS`] rounds without any event.
const ROUND_ASLEEP: Duration = Duration::from_secs(1);
const ASLEEP_ROUNDS: u32 = 60;
/// Shortest time between two times at which a session that falls asleep gives its code back, ns.
const GIVE_BACK_EVERY_NS: u64 = 300_000_000_000;
/// Number of events per round below which there are hardly any.
const CALM_EVENTS: u64 = 256;

/// Running session.
#[derive(Debug)]
pub struct Session {
    pub(crate) recorder: Recorder,
    pub(crate) agent: std::path::PathBuf,
    next_flush_ns: u64,
    flush_timer_ns: u64,
    is_busy: bool,
    /// Rounds without an event since the last one that had some.
    idle_rounds: u32,
    next_give_back_ns: u64,
    spare_time: SpareTime,
    /// True if requests wake the session, so that rounds may be far apart.
    may_rest: bool,
    bell: Bell,
    has_told_error: bool,
    properties: SessionProperties,
    start_unix_ns: u64,
    marker_count: u64,
    /// Time at which another sampling rate applies again, and that rate.
    former_rate: Option<(u64, SampleRate)>,
    /// True if the file has reached its largest size, or the recording was ended: the recorder is
    /// closed.
    is_full: bool,
    /// Thread that searches programs for embedded allocators; `None` if it cannot run.
    pub(crate) inside: Option<Watch>,
    /// Tasks from other threads.
    pub(crate) tasks: (Letterbox<Task>, Receiver<Task>),
    /// Threads that handle programs held at their exec.
    pub(crate) exec_holds: ExecHolds,
    /// Reason for which the program that was to be held is not recorded.
    pub(crate) not_held: Option<String>,
}

/// Task to be run in the session's own thread.
pub(crate) type Task = Box<dyn FnOnce(&mut Session) + Send>;

/// Result of a session.
#[derive(Debug)]
pub struct SessionSummary {
    /// Totals and stacks.
    pub summary: Summary,
    /// Buffers, waits, unwinding, losses.
    pub statistics: Statistics,
    /// Time from start to stop.
    pub wall: Duration,
    /// Number of process images recorded.
    pub process_count: usize,
    /// Reason for which a program started by [`Session::spawn_held`] is not recorded.
    pub not_held: Option<String>,
    /// Reports of snapshots that were not fetched before.
    pub snapshots: Vec<SnapshotReport>,
    /// Error that ended the writing of the file.
    pub write_error: Option<heapr_trace::Error>,
    /// Modules whose names cannot be found by their paths any more.
    pub held_modules: Vec<HeldModule>,
    /// Names of JIT code that processes reported.
    pub held_made_code: Vec<HeldMadeCode>,
}

/// Error that ended the writing of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteError {
    /// Failed operation and its cause.
    pub message: String,
    /// Whether the file contains events or snapshots from before the error.
    pub is_readable: bool,
}

impl Session {
    /// Starts a session: the file is created, the buffers are ready.
    ///
    /// # Errors
    /// The file or the buffers cannot be created, or no directory is suitable for the agent.
    pub fn start(mut properties: SessionProperties) -> Result<Self, Error> {
        properties.check()?;
        check_memory(&properties)?;
        let agent = agent_file()?;
        let size = pool_growth::size(&properties)?;
        properties.max_buffers = size.buffer_count;
        properties.min_buffers = size.open_count;
        let (pool, descriptor) = Pool::create(size)?;
        let mut sink = Sink::create(&properties)?;
        let source = ClockSource::detect();
        let clock = Clock::start(source);
        let start_unix_ns = unix_ns();
        describe(&mut sink, &properties, source, start_unix_ns);
        // From here on a killed recorder leaves a file that can be opened.
        sink.flush();
        let mut sought = Sought::new(&properties.allocators);
        if properties.sample.is_some() {
            // Separate heaps would be recorded in full, at most of the cost of a full recording.
            sought = sought.of_main_heap();
        }
        let shared = Pool::open(&descriptor).ok().map(|pool| Arc::new(pool.unmapped_when_dropped()));
        let bell = Bell::of(shared.clone());
        let inside = shared.map(|pool| Watch::new(pool, sought));
        open_pool(&pool, &clock, source, &properties, inside.is_some());
        let (tasks, wanted) = channel();
        let mut recorder = Recorder::new(pool, PoolGrowth::new(descriptor), clock, sink);
        recorder.set_exit_contents(properties.graph_contents);
        Ok(Self {
            recorder,
            agent,
            next_flush_ns: 0,
            flush_timer_ns: u64::try_from(properties.flush_timer.as_nanos())
                .unwrap_or(u64::MAX)
                .max(10_000_000),
            is_busy: true,
            spare_time: SpareTime::default(),
            has_told_error: false,
            properties,
            start_unix_ns,
            marker_count: 0,
            former_rate: None,
            is_full: false,
            inside,
            tasks: (Letterbox::new(tasks, bell.clone()), wanted),
            idle_rounds: 0,
            next_give_back_ns: 0,
            may_rest: false,
            bell,
            exec_holds: ExecHolds::default(),
            not_held: None,
        })
    }

    /// Returns the variables that make a program (and its children) record into this session.
    #[must_use]
    pub fn environment_for_target(&self) -> Vec<(OsString, OsString)> {
        let present = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        let preload = preload_with(&self.agent, &present);
        let session = format!("{}:{}", heapr_proc::own_pid(), self.recorder.growth.descriptor.number());
        vec![("LD_PRELOAD".into(), preload), ("HEAPR_SESSION".into(), session.into())]
    }

    /// Lets [`Session::step`] work, while there is no hurry, in a thread that runs only in spare
    /// processor time. Only for processes that do nothing but record: such a thread may hold a lock
    /// that other threads of this process wait for.
    pub fn use_spare_time(&mut self) {
        self.spare_time.is_on = true;
    }

    /// Suspends spare time while a target is held still.
    pub(crate) fn hold_spare_time(&mut self, is_held: bool) {
        self.spare_time.is_held = is_held;
    }

    /// Sets whether rounds may be far apart, because requests wake the session.
    pub(crate) fn let_rest(&mut self, may_rest: bool) {
        self.may_rest = may_rest;
    }

    /// Returns the bell that wakes the session.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Runs one round, then sleeps until there is something to do.
    pub fn step(&mut self) {
        if self.is_full {
            std::thread::sleep(ROUND_IDLE);
            return;
        }
        self.take_looked();
        let turn = self.spare_time.turn(&mut self.recorder);
        self.recorder.advance_snapshots();
        self.end_if_full();
        self.recorder.go_on_in_next_if_due();
        let now_ns = self.recorder.clock().now_ns();
        self.end_rate_if_due(now_ns);
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + self.flush_timer_ns;
            self.recorder.flush();
        }
        // No sleep if the round left events or a thread waits for a buffer.
        let has_waiters = self.recorder.pool().control().waiter_count.load(Relaxed) != 0;
        if !turn.is_caught_up || has_waiters || self.recorder.has_snapshots_to_take() {
            return;
        }
        self.is_busy = turn.event_count > 0;
        self.idle_rounds = if self.is_busy { 0 } else { self.idle_rounds.saturating_add(1) };
        let is_calm = self.may_rest
            && turn.event_count < CALM_EVENTS
            // Rules due at a certain time do not wake the session.
            && !self.recorder.has_snapshot_rules();
        let longest = match (self.properties.sample, self.is_busy) {
            (Some(_), _) if is_calm && self.idle_rounds >= ASLEEP_ROUNDS => ROUND_ASLEEP,
            (Some(_), _) if is_calm => ROUND_CALM,
            (Some(_), _) => ROUND_SAMPLED,
            (None, true) => ROUND_BUSY,
            (None, false) => ROUND_IDLE,
        };
        if longest == ROUND_ASLEEP && now_ns >= self.next_give_back_ns {
            self.next_give_back_ns = now_ns + GIVE_BACK_EVERY_NS;
            heapr_inject::give_back_code();
        }
        reader::sleep(self.recorder.pool(), longest.as_nanos() as u64);
    }

    /// Runs one round without sleep.
    pub fn step_now(&mut self) {
        if !self.is_full {
            self.take_looked();
            self.recorder.round();
        }
    }

    /// Passes on what was found in programs, and runs tasks from other threads.
    fn take_looked(&mut self) {
        self.begin_looking();
        if let Some(inside) = &mut self.inside {
            self.recorder.looked.extend(inside.take());
        }
        while let Ok(task) = self.tasks.1.try_recv() {
            task(self);
        }
    }

    /// Ends the recording when the file has its largest size. The targets run on untraced, at full
    /// speed.
    fn end_if_full(&mut self) {
        if self.recorder.sink.is_full() {
            self.end_recording();
        }
    }

    /// Ends the recording before the session's end. The targets run on untraced, at full speed.
    pub fn end_recording(&mut self) {
        if !self.is_full {
            self.recorder.close();
            self.recorder.flush();
            self.is_full = true;
        }
    }

    /// Whether the file has reached its largest size, after which nothing is recorded.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Reads what was published and makes the file readable.
    pub fn flush(&mut self) {
        self.step_now();
        self.recorder.flush();
    }

    /// Makes the file readable.
    pub(crate) fn flush_file(&mut self) {
        self.recorder.flush();
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub(crate) fn start_unix_ns(&self) -> u64 {
        self.start_unix_ns
    }

    pub(crate) fn marker_count(&self) -> u64 {
        self.marker_count
    }

    /// Returns the properties of the start, with later changes.
    #[must_use]
    pub fn properties(&self) -> &SessionProperties {
        &self.properties
    }

    /// Returns the first error of the file, once.
    pub fn take_write_error(&mut self) -> Option<WriteError> {
        if self.has_told_error {
            return None;
        }
        let sink = &self.recorder.sink;
        let message = sink.write_error.as_ref()?.to_string();
        let is_readable = sink.writer.is_readable();
        self.has_told_error = true;
        Some(WriteError { message, is_readable })
    }

    /// Reads what is left and finishes the file.
    #[must_use]
    pub fn stop(mut self) -> SessionSummary {
        // No new search begins from here on; searches under way are completed.
        if let Some(inside) = &mut self.inside {
            inside.end();
        }
        self.exec_holds.finish();
        self.take_looked();
        self.inside = None;
        if !self.is_full {
            self.recorder.close();
        }
        let duration_ns = self.recorder.clock().now_ns();
        let statistics = self.recorder.statistics();
        let process_count = self.recorder.process_count();
        let snapshots = std::iter::from_fn(|| self.recorder.take_snapshot_report()).collect();
        let mut module_files = std::mem::take(&mut self.recorder.sink.module_files);
        let held_made_code = module_files.take_made_code();
        let not_held = self.not_held.take();
        let (summary, write_error) = self.recorder.finish(duration_ns, statistics);
        SessionSummary {
            summary,
            statistics,
            wall: Duration::from_nanos(duration_ns),
            process_count,
            not_held,
            snapshots,
            write_error,
            held_modules: module_files.finish(),
            held_made_code,
        }
    }
}
