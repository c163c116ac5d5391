//! A session from start to stop.

use std::ffi::OsString;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapr_ring::{Pool, PoolProperties, reader, sys};
use heapr_trace::Summary;
use heapr_wire::{
    FLAG_CLOCK_TSC, FLAG_DROP_ON_FULL, FLAG_HOOK_MMAP, FLAG_NO_FOLLOW, FLAG_STACK_ALLOC, FLAG_STACK_CREATE,
    FLAG_STACK_DESTROY, FLAG_STACK_FREE, FLAG_STACK_REALLOC, SESSION_RECORDING,
};

use crate::agent_file::agent_file;
use crate::clock::{Clock, ClockSource};
use crate::recorder::{Recorder, Statistics};
use crate::sink::Sink;
use crate::{Error, OnFull, SessionProperties, process_facts, system_facts};

/// Longest sleep between two rounds while events come. At 20 million events a second 20 ms are some 150 buffers of 64 KiB, and
/// half of the pool being claimed wakes the recorder anyway. (5 ms took 15 % more of the recorder's processor time on redis
/// and 40 times as many switches between tasks.)
const ROUND_BUSY: Duration = Duration::from_millis(20);
/// A round that took this many events is followed by the next at once: they came in less time than the sleep lasts.
const EVENTS_WITHOUT_SLEEP: u64 = 50_000;
/// Longest sleep while none come: a full pool wakes the recorder before.
const ROUND_IDLE: Duration = Duration::from_millis(20);

/// A running session.
#[derive(Debug)]
pub struct Session {
    pub(crate) recorder: Recorder,
    pub(crate) descriptor: sys::Descriptor,
    pub(crate) agent: std::path::PathBuf,
    next_flush_ns: u64,
    flush_timer_ns: u64,
    is_busy: bool,
    has_told_error: bool,
}

/// What a session recorded.
#[derive(Debug)]
pub struct SessionSummary {
    /// Totals and stacks.
    pub summary: Summary,
    /// Buffers, waits, unwinding, losses.
    pub statistics: Statistics,
    /// From start to stop.
    pub wall: Duration,
    /// Process images recorded.
    pub process_count: usize,
    /// The file could not be written to its end; it can be read up to there.
    pub write_error: Option<heapr_trace::Error>,
}

impl Session {
    /// Starts a session: the file is made, the buffers are ready.
    ///
    /// # Errors
    /// The file cannot be made, the buffers cannot, or there is no place for the agent.
    pub fn start(properties: SessionProperties) -> Result<Self, Error> {
        let agent = agent_file()?;
        let (pool, descriptor) = Pool::create(PoolProperties {
            buffer_bytes: properties.buffer_bytes,
            buffer_count: properties.max_buffers,
            allocated_count: properties.min_buffers,
        })?;
        let mut sink = Sink::create(&properties.output, properties.overwrite)?;
        let source = ClockSource::detect();
        let clock = Clock::start(source);
        describe(&mut sink, &properties, source);
        open_pool(&pool, &clock, source, &properties);
        Ok(Self {
            recorder: Recorder::new(pool, clock, sink),
            descriptor,
            agent,
            next_flush_ns: 0,
            flush_timer_ns: u64::try_from(properties.flush_timer.as_nanos())
                .unwrap_or(u64::MAX)
                .max(10_000_000),
            is_busy: true,
            has_told_error: false,
        })
    }

    /// The variables that make a program (and its children) record into this session.
    #[must_use]
    pub fn environment_for_target(&self) -> Vec<(OsString, OsString)> {
        let mut preload = self.agent.clone().into_os_string();
        if let Some(present) = std::env::var_os("LD_PRELOAD").filter(|present| !present.is_empty()) {
            preload.push(":");
            preload.push(present);
        }
        let session = format!("{}:{}", std::process::id(), self.descriptor.number());
        vec![("LD_PRELOAD".into(), preload), ("HEAPR_SESSION".into(), session.into())]
    }

    /// One round, then sleep until there is something to do.
    pub fn step(&mut self) {
        let taken = self.recorder.round();
        let now_ns = self.recorder.clock().now_ns();
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + self.flush_timer_ns;
            self.recorder.flush();
        }
        // More has come during the round than fits a few buffers, or somebody waits: no sleep.
        let has_waiters = self.recorder.pool().control().waiter_count.load(Relaxed) != 0;
        if taken >= EVENTS_WITHOUT_SLEEP || has_waiters {
            return;
        }
        self.is_busy = taken > 0;
        let longest = if self.is_busy { ROUND_BUSY } else { ROUND_IDLE };
        reader::sleep(self.recorder.pool(), longest.as_nanos() as u64);
    }

    /// One round without sleep.
    pub fn step_now(&mut self) {
        self.recorder.round();
    }

    /// Looks at once which of the processes still live.
    pub fn look_for_ends(&mut self) {
        self.recorder.look_for_ends();
    }

    /// Whether a process was forked that has not registered yet (or could not).
    #[must_use]
    pub fn has_forks_on_their_way(&self) -> bool {
        let control = self.recorder.pool().control();
        control.forks_begun.load(Relaxed) > control.forks_arrived.load(Relaxed)
    }

    /// Traced processes that live, as of the last look.
    #[must_use]
    pub fn live_process_count(&self) -> usize {
        self.recorder.live_process_count()
    }

    /// Process images seen so far.
    #[must_use]
    pub fn process_count(&self) -> usize {
        self.recorder.process_count()
    }

    /// Tells that a child was waited for, with its raw wait status.
    pub fn process_exited(&mut self, pid: u32, wait_status: i32) {
        self.recorder.process_exited(pid, wait_status);
    }

    /// The first error of the file, once.
    pub fn take_write_error(&mut self) -> Option<String> {
        if self.has_told_error {
            return None;
        }
        let message = self.recorder.sink.write_error.as_ref().map(ToString::to_string);
        self.has_told_error = message.is_some();
        message
    }

    /// Takes what is left, ends the file.
    #[must_use]
    pub fn stop(mut self) -> SessionSummary {
        self.recorder.close();
        let duration_ns = self.recorder.clock().now_ns();
        let statistics = self.recorder.statistics();
        let process_count = self.recorder.process_count();
        let (summary, write_error) = self.recorder.finish(duration_ns, statistics);
        SessionSummary {
            summary,
            statistics,
            wall: Duration::from_nanos(duration_ns),
            process_count,
            write_error,
        }
    }
}

/// Writes what is known at the start into the file.
fn describe(sink: &mut Sink, properties: &SessionProperties, source: ClockSource) {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let session = heapr_trace::Session {
        name: properties.name.clone(),
        heapr_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: properties.command_line.clone(),
        start_unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(0),
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

/// Fills in the control page; with its state the agents may come.
fn open_pool(pool: &Pool, clock: &Clock, source: ClockSource, properties: &SessionProperties) {
    let stacks = properties.stacks;
    let flags = [
        (source == ClockSource::Tsc, FLAG_CLOCK_TSC),
        (properties.on_full == OnFull::Drop, FLAG_DROP_ON_FULL),
        (properties.mmap, FLAG_HOOK_MMAP),
        (!properties.follow, FLAG_NO_FOLLOW),
        (stacks.alloc, FLAG_STACK_ALLOC),
        (stacks.realloc, FLAG_STACK_REALLOC),
        (stacks.free, FLAG_STACK_FREE),
        (stacks.create, FLAG_STACK_CREATE),
        (stacks.destroy, FLAG_STACK_DESTROY),
    ];
    let flags = flags.into_iter().filter(|&(is_on, _)| is_on).fold(0, |all, (_, flag)| all | flag);
    let control = pool.control();
    control.flags.store(flags, Relaxed);
    control.max_frames.store(properties.max_frames, Relaxed);
    control.verify_every.store(properties.verify_every, Relaxed);
    control.recorder_pid.store(std::process::id(), Relaxed);
    control.recorder_namespace.store(process_facts::own_namespace(), Relaxed);
    control.start_ticks.store(clock.start_ticks(), Relaxed);
    // Release: whoever sees the state sees the rest.
    control.state.store(SESSION_RECORDING, Release);
}
