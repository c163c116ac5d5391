//! A session from start to stop.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapr_allocators::Table;
use heapr_ring::{Pool, reader};
use heapr_trace::Summary;
use heapr_wire::{
    FLAG_CLOCK_TSC, FLAG_DROP_ON_FULL, FLAG_HOOK_MMAP, FLAG_LOOK_INSIDE, FLAG_NO_FOLLOW, FLAG_NO_LANGUAGES,
    FLAG_SAMPLED, FLAG_SEE_EXITS, FLAG_STACK_ALLOC, FLAG_STACK_CREATE, FLAG_STACK_DESTROY, FLAG_STACK_FREE,
    FLAG_STACK_REALLOC, FLAG_STACK_SPECIAL, SAMPLE_ALL, SESSION_RECORDING,
};

use crate::agent_file::{agent_file, preload_with};
use crate::bell::{Bell, Letterbox};
use crate::exec_hold_threads::ExecHolds;
use crate::recorder::Recorder;
use crate::recorder::clock::{Clock, ClockSource};
use crate::recorder::inside::Watch;
use crate::recorder::made_code::HeldMadeCode;
use crate::recorder::module_files::HeldModule;
use crate::recorder::pool_growth::{self, PoolGrowth};
use crate::recorder::sink::Sink;
use crate::recorder::spare_time::SpareTime;
use crate::recorder::statistics::Statistics;
use crate::recorder::{process_facts, system_facts};
use crate::snapshots::native_snapshot::{SnapshotReport, SnapshotRequest, SnapshotTicket};
use crate::snapshots::native_snapshot_rules::SnapshotRule;
use crate::{Error, OnFull, Progress, SampleRate, SessionProperties, StackEvents};

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
    spare_time: SpareTime,
    /// True if requests wake the session, so that rounds may be far apart.
    may_rest: bool,
    bell: Bell,
    has_told_error: bool,
    properties: SessionProperties,
    start_unix_ns: u64,
    marker_count: u64,
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
        let mut table = Table::with(&properties.allocators).unwrap_or_default();
        if properties.sample.is_some() {
            // A language's own heap would be recorded in full, at most of the cost of a full
            // recording.
            table = table.of_main_heap();
        }
        let shared = Pool::open(&descriptor).ok().map(|pool| Arc::new(pool.unmapped_when_dropped()));
        let bell = Bell::of(shared.clone());
        let inside = shared.map(|pool| Watch::new(pool, table));
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
            is_full: false,
            inside,
            tasks: (Letterbox::new(tasks, bell.clone()), wanted),
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
        let is_calm = self.may_rest
            && turn.event_count < CALM_EVENTS
            // Rules due at a certain time do not wake the session.
            && !self.recorder.has_snapshot_rules();
        let longest = match (self.properties.sample, self.is_busy) {
            (Some(_), _) if is_calm => ROUND_CALM,
            (Some(_), _) => ROUND_SAMPLED,
            (None, true) => ROUND_BUSY,
            (None, false) => ROUND_IDLE,
        };
        reader::sleep(self.recorder.pool(), longest.as_nanos() as u64);
    }

    /// Requests a snapshot of live heaps. [`Session::step`] takes it in slices, without stopping
    /// any process.
    ///
    /// # Errors
    /// A process is not recorded by this session, or too many snapshots wait.
    pub fn request_snapshot(&mut self, request: SnapshotRequest) -> Result<SnapshotTicket, Error> {
        self.check_is_recording()?;
        self.recorder.request_snapshot(request)
    }

    fn check_is_recording(&self) -> Result<(), Error> {
        if self.is_full { Err(Error::RecordingEnded) } else { Ok(()) }
    }

    /// Takes a snapshot at once, and continues recording meanwhile.
    ///
    /// # Errors
    /// See [`Session::request_snapshot`].
    pub fn snapshot(&mut self, request: SnapshotRequest) -> Result<SnapshotReport, Error> {
        let ticket = self.request_snapshot(request)?;
        loop {
            self.recorder.round();
            self.recorder.advance_snapshots();
            if let Some(report) = self.recorder.take_report_of(ticket) {
                return Ok(report);
            }
        }
    }

    /// Takes the oldest report of a snapshot, by request or rule; each is returned once.
    pub fn take_snapshot_report(&mut self) -> Option<SnapshotReport> {
        self.recorder.take_snapshot_report()
    }

    /// Takes the report of a requested snapshot, once it is finished.
    pub(crate) fn take_report_of(&mut self, ticket: SnapshotTicket) -> Option<SnapshotReport> {
        self.recorder.take_report_of(ticket)
    }

    /// Adds a rule for snapshots.
    pub fn add_snapshot_rule(&mut self, rule: SnapshotRule) {
        self.recorder.add_snapshot_rule(rule);
    }

    /// Retains the rules for which `is_kept` returns true.
    pub fn retain_snapshot_rules(&mut self, is_kept: impl FnMut(&SnapshotRule) -> bool) {
        self.recorder.retain_snapshot_rules(is_kept);
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

    /// Writes a marker with a text into the trace, at the present time.
    pub fn mark(&mut self, text: &str) {
        let time_ns = self.recorder.clock().now_ns();
        let outcome =
            self.recorder.sink.writer.marker(&heapr_trace::Marker { time_ns, text: text.to_owned() });
        self.recorder.sink.keep(outcome);
        self.marker_count += 1;
    }

    /// Sets which events carry stacks.
    pub fn set_stacks(&mut self, stacks: StackEvents) {
        self.properties.stacks = stacks;
        let flags = &self.recorder.pool().control().flags;
        // No other thread writes the flags.
        flags.store(flags.load(Relaxed) & !STACK_FLAGS | stack_flags(stacks), Relaxed);
    }

    /// Sets the sampling rate.
    ///
    /// # Errors
    /// The session was started to record all allocations.
    pub fn set_sample_rate(&mut self, rate: SampleRate) -> Result<(), Error> {
        rate.check()?;
        if !self.recorder.set_sample_rate(rate) {
            return Err(Error::NotSampled);
        }
        // The file shows a time without recording only by this marker.
        if (rate == SampleRate::Off) != (self.properties.sample == Some(SampleRate::Off)) {
            self.mark(&format!("sampling: {}", rate.to_text()));
        }
        self.properties.sample = Some(rate);
        Ok(())
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

    /// Checks at once which of the processes still live.
    pub fn look_for_ends(&mut self) {
        self.recorder.look_for_ends();
    }

    /// Whether a process was forked that has not registered yet (or could not).
    #[must_use]
    pub fn has_forks_on_their_way(&self) -> bool {
        let control = self.recorder.pool().control();
        control.forks_begun.load(Relaxed) > control.forks_arrived.load(Relaxed)
    }

    /// Number of live traced processes, as of the last check.
    #[must_use]
    pub fn live_process_count(&self) -> usize {
        self.recorder.live_process_count()
    }

    /// Progress of the recording.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.recorder.progress()
    }

    /// Number of process images seen so far.
    #[must_use]
    pub fn process_count(&self) -> usize {
        self.recorder.process_count()
    }

    /// Notes that a child was waited for, with its raw wait status.
    pub fn process_exited(&mut self, pid: u32, wait_status: i32) {
        self.recorder.process_exited(pid, wait_status);
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

/// Checks that the buffers fit into free memory: with too much shared memory the kernel kills a
/// process of its choice.
fn check_memory(properties: &SessionProperties) -> Result<(), Error> {
    let needed_bytes = properties.min_buffers.saturating_mul(properties.buffer_bytes) as u64;
    match heapr_proc::Fields::of_machine().bytes("MemAvailable") {
        Some(available_bytes) if needed_bytes > available_bytes => {
            Err(Error::OutOfMemory { needed_mib: needed_bytes >> 20, available_mib: available_bytes >> 20 })
        }
        _ => Ok(()),
    }
}

fn unix_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(0)
}

/// Flags that may change while a session runs.
const STACK_FLAGS: u32 =
    FLAG_STACK_ALLOC | FLAG_STACK_REALLOC | FLAG_STACK_FREE | FLAG_STACK_CREATE | FLAG_STACK_DESTROY;

fn stack_flags(stacks: StackEvents) -> u32 {
    let flags = [
        (stacks.alloc, FLAG_STACK_ALLOC),
        (stacks.realloc, FLAG_STACK_REALLOC),
        (stacks.free, FLAG_STACK_FREE),
        (stacks.create, FLAG_STACK_CREATE),
        (stacks.destroy, FLAG_STACK_DESTROY),
    ];
    flags.into_iter().filter(|&(is_on, _)| is_on).fold(0, |all, (_, flag)| all | flag)
}

/// Writes what is known at the start into the file.
fn describe(sink: &mut Sink, properties: &SessionProperties, source: ClockSource, start_unix_ns: u64) {
    let session = heapr_trace::Session {
        name: properties.name.clone(),
        heapr_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: properties.command_line.clone(),
        start_unix_ns,
        clock: source.name().to_owned(),
        buffer_bytes: properties.buffer_bytes as u32,
        min_buffers: properties.min_buffers as u32,
        max_buffers: properties.max_buffers as u32,
        flush_timer_ms: u32::try_from(properties.flush_timer.as_millis()).unwrap_or(u32::MAX),
        on_full: match properties.on_full {
            OnFull::Block => "block".to_owned(),
            OnFull::Drop => "drop".to_owned(),
        },
        stacks: properties.stacks.to_text(),
        max_frames: properties.max_frames,
    };
    let outcome =
        sink.writer.set_system(&system_facts::system()).and_then(|()| sink.writer.set_session(&session));
    sink.keep(outcome);
}

/// Fills in the control page. Its state, stored last, lets the agents in.
fn open_pool(
    pool: &Pool,
    clock: &Clock,
    source: ClockSource,
    properties: &SessionProperties,
    looks_inside: bool,
) {
    let flags = [
        (source == ClockSource::Tsc, FLAG_CLOCK_TSC),
        (properties.on_full == OnFull::Drop, FLAG_DROP_ON_FULL),
        (properties.mmap, FLAG_HOOK_MMAP),
        (!properties.follow, FLAG_NO_FOLLOW),
        (looks_inside, FLAG_LOOK_INSIDE),
        (!properties.languages, FLAG_NO_LANGUAGES),
        (properties.graph_at_exit, FLAG_SEE_EXITS),
        (properties.sample.is_some(), FLAG_SAMPLED),
    ];
    let flags = flags.into_iter().filter(|&(is_on, _)| is_on).fold(0, |all, (_, flag)| all | flag);
    let is_special = properties.max_frames | properties.verify_every != 0;
    let flags = flags | stack_flags(properties.stacks) | if is_special { FLAG_STACK_SPECIAL } else { 0 };
    let control = pool.control();
    control.flags.store(flags, Relaxed);
    control
        .sample_mean_bytes
        .store(properties.sample.map_or(SAMPLE_ALL, SampleRate::first_mean_bytes), Relaxed);
    control.max_frames.store(properties.max_frames, Relaxed);
    control.verify_every.store(properties.verify_every, Relaxed);
    control.recorder_pid.store(std::process::id(), Relaxed);
    control.recorder_namespace.store(process_facts::own_namespace(), Relaxed);
    control.recorder_uid.store(process_facts::own_user(), Relaxed);
    let start_time = heapr_proc::start_ticks(std::process::id()).unwrap_or(0);
    control.recorder_start_time.store(start_time, Relaxed);
    control.start_ticks.store(clock.start_ticks(), Relaxed);
    // Release: a reader of the state also sees the rest.
    control.state.store(SESSION_RECORDING, Release);
}
