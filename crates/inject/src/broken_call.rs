//! System calls that end with EINTR when a tracer stops their thread, without a signal. They are
//! restarted when the thread resumes, with the rest of their time-out.
//!
//! ```text
//! before the stop    reads since when the thread has been sleeping in the call
//! while stopped      EINTR --> ERESTARTNOHAND: the kernel restarts the call on resume;
//!                    if a handler runs before that, the call ends with EINTR, as without the stop
//! on resume          the rest of the time-out is written into the call's arguments
//! ```
//! The kernel itself restarts all other calls.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use heapr_known::machine::HERE;
use heapr_proc::{LastRun, SleepingCall};

use crate::arch::{IO_PGETEVENTS, IS_FIRST_ARGUMENT_LOST, Registers, old_calls};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::processor_clock::processor_clock_ms;
use crate::ptrace;

/// Location of a call's time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// No time-out in the arguments; a socket may have one.
    None,
    /// Milliseconds in this argument; negative: for ever.
    Milliseconds(usize),
    /// Address of a `struct timespec` in this argument; null: for ever.
    TimeSpec(usize),
    /// In the last argument of `io_uring_enter`.
    RingArgument,
}

/// Calls that return EINTR after a stop even without a handler (signal(7), and the kernel's
/// source).
const CALLS: [(libc::c_long, Limit); 18] = [
    (old_calls::EPOLL_WAIT, Limit::Milliseconds(3)),
    (libc::SYS_epoll_pwait, Limit::Milliseconds(3)),
    (libc::SYS_epoll_pwait2, Limit::TimeSpec(3)),
    (libc::SYS_semop, Limit::None),
    (libc::SYS_semtimedop, Limit::TimeSpec(3)),
    (libc::SYS_rt_sigtimedwait, Limit::TimeSpec(2)),
    (libc::SYS_io_getevents, Limit::TimeSpec(4)),
    (IO_PGETEVENTS, Limit::TimeSpec(4)),
    (libc::SYS_io_uring_enter, Limit::RingArgument),
    (libc::SYS_accept, Limit::None),
    (libc::SYS_accept4, Limit::None),
    (libc::SYS_connect, Limit::None),
    (libc::SYS_recvfrom, Limit::None),
    (libc::SYS_recvmsg, Limit::None),
    (libc::SYS_recvmmsg, Limit::None),
    (libc::SYS_sendto, Limit::None),
    (libc::SYS_sendmsg, Limit::None),
    (libc::SYS_sendmmsg, Limit::None),
];
/// Calls that return EINTR after a stop if the descriptor is a socket. The meaning of EINTR from
/// other drivers is unknown.
const STREAM_CALLS: [libc::c_long; 4] = [libc::SYS_read, libc::SYS_readv, libc::SYS_write, libc::SYS_writev];

const EINTR: i64 = -(libc::EINTR as i64);
const TIME_BYTES: u64 = 16;
/// Size in bytes reserved for the argument of `io_uring_enter`.
const RING_ARGUMENT_BYTES: u64 = 64;

fn may_be_broken(call: &SleepingCall) -> bool {
    let number = call.number.cast_signed();
    limit_of(number).is_some() || STREAM_CALLS.contains(&number)
}

fn limit_of(number: libc::c_long) -> Option<Limit> {
    CALLS.iter().find(|&&(call, _)| call == number).map(|&(_, limit)| limit)
}

/// Threads that sleep in calls with a time-out, before they are stopped.
#[derive(Debug)]
pub(crate) struct Sleepers {
    by_tid: HashMap<u32, Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    call: SleepingCall,
    /// Time at which the thread last ran.
    since: Instant,
    sleep_count: u64,
}

impl Sleepers {
    /// Reads the sleepers of a running process: one file for each thread, and more for each call
    /// with a time-out.
    pub(crate) fn of(pid: u32) -> Self {
        let (mut by_tid, mut clocks) = (HashMap::new(), HashMap::new());
        for tid in heapr_proc::threads(pid).into_iter().flatten() {
            let has_limit = |call: &SleepingCall| match limit_of(call.number.cast_signed()) {
                None if Registers::is_sleep_with_rest(call.number.cast_signed(), &call.arguments) => true,
                None | Some(Limit::None) => IS_FIRST_ARGUMENT_LOST && may_be_broken(call),
                Some(Limit::Milliseconds(place)) => call.arguments[place] as i32 > 0,
                Some(Limit::TimeSpec(place)) => call.arguments[place] != 0,
                Some(Limit::RingArgument) => call.arguments[4] != 0,
            };
            let Some(call) = SleepingCall::of(pid, tid).filter(has_limit) else { continue };
            let Some(run) = LastRun::of(pid, tid) else { continue };
            // The later of two times: a slightly too long sleep is better than an early return.
            let (clock_ms, read) = *clocks
                .entry(run.processor)
                .or_insert_with(|| (processor_clock_ms(run.processor), Instant::now()));
            let asleep_ms = clock_ms.map_or(0.0, |clock_ms: f64| (clock_ms - run.clock_ms).max(0.0));
            let asleep = Duration::try_from_secs_f64(asleep_ms / 1000.0).unwrap_or_default();
            let since = read.checked_sub(asleep).unwrap_or(read);
            by_tid.insert(tid, Sleeper { call, since, sleep_count: run.sleep_count });
        }
        Self { by_tid }
    }

    /// First argument of the call that a stopped thread has left; `None` if unknown.
    fn first_argument(&self, tid: u32, registers: &Registers) -> Option<u64> {
        let call = &self.by_tid.get(&tid)?.call;
        let is_same = registers.system_call() == Some(call.number.cast_signed())
            && call.arguments[1..] == registers.arguments()[1..];
        is_same.then_some(call.arguments[0])
    }

    /// Time that a stopped thread has been in its call; zero if unknown.
    fn time_in(&self, pid: u32, tid: u32, registers: &Registers) -> Duration {
        self.of_stopped(pid, tid, registers).map_or(Duration::ZERO, |sleeper| sleeper.since.elapsed())
    }

    /// Sleeper whose call the stop has interrupted; `None` if that is unknown.
    fn of_stopped(&self, pid: u32, tid: u32, registers: &Registers) -> Option<&Sleeper> {
        let sleeper = self.by_tid.get(&tid)?;
        let is_of = registers.system_call() == Some(sleeper.call.number.cast_signed())
            && sleeper.call.arguments == registers.arguments();
        // The stop itself counts as one more sleep.
        let is_the_same =
            || LastRun::of(pid, tid).map_or(0, |run| run.sleep_count) == sleeper.sleep_count + 1;
        (is_of && is_the_same()).then_some(sleeper)
    }

    /// Notes in a stopped thread's registers that the stop has interrupted a sleep.
    pub(crate) fn note(&self, pid: u32, tid: u32, registers: &mut Registers) {
        let is_sleep = |number| Registers::is_sleep_with_rest(number, &registers.arguments());
        if registers.system_call().is_some_and(is_sleep) && self.of_stopped(pid, tid, registers).is_some() {
            registers.note_sleep();
        }
    }
}

/// A call that a stop has interrupted, and that is restarted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokenCall {
    limit: Limit,
    /// Registers with the original arguments.
    original: Registers,
    until: Option<Instant>,
}

impl BrokenCall {
    /// Sets a stopped thread's registers so that its call is restarted. `None`: there is no such
    /// call, or the kernel restarts it.
    pub(crate) fn mend(
        pid: u32,
        tid: u32,
        registers: &mut Registers,
        memory: &ProcessMemory,
        sleepers: &Sleepers,
    ) -> Option<Self> {
        if registers.returned() != EINTR || !registers.is_64_bit() {
            return None;
        }
        let number = registers.system_call()?;
        let is_stream_call = STREAM_CALLS.contains(&number);
        let limit = limit_of(number).or_else(|| {
            (is_stream_call && is_socket(tid, registers.arguments()[0])).then_some(Limit::None)
        })?;
        if !registers.restart_broken(sleepers.first_argument(tid, registers)) {
            return None;
        }
        let original = *registers;
        let whole = whole_time(limit, registers, memory);
        let until = whole.map(|whole| {
            let left = whole.saturating_sub(sleepers.time_in(pid, tid, registers));
            Instant::now() + left
        });
        let call = Self { limit, original, until };
        call.set_time(registers, memory);
        ptrace::set_registers(tid, registers).ok()?;
        Some(call)
    }

    /// Updates the rest of the time-out just before the thread resumes.
    pub(crate) fn renew(&self, tid: u32, memory: &ProcessMemory) {
        let Ok(mut registers) = ptrace::registers(tid) else { return };
        let is_same = self.until.is_some()
            && registers.returned() == self.original.returned()
            && registers.system_call() == self.original.system_call()
            && (registers.pc(), registers.sp()) == (self.original.pc(), self.original.sp());
        if is_same {
            self.set_time(&mut registers, memory);
            // On failure the sleep is longer by the duration of the stop.
            let _ = ptrace::set_registers(tid, &registers);
        }
    }

    /// Writes the rest of the time-out; on failure the time-out begins again.
    fn set_time(&self, registers: &mut Registers, memory: &ProcessMemory) {
        let Some(until) = self.until else { return };
        let left = until.saturating_duration_since(Instant::now());
        let time = [left.as_secs(), u64::from(left.subsec_nanos())].map(u64::to_le_bytes).concat();
        let time_avma = registers.sp().wrapping_sub(HERE.red_zone_bytes + TIME_BYTES) & !15;
        match self.limit {
            Limit::None => {}
            Limit::Milliseconds(place) => {
                let milliseconds = left.as_nanos().div_ceil(1_000_000);
                let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
                registers.set_argument(place, milliseconds as u64);
            }
            Limit::TimeSpec(place) => {
                if memory.write(time_avma, &time).is_ok() {
                    registers.set_argument(place, time_avma);
                }
            }
            Limit::RingArgument => {
                let argument_avma = time_avma - RING_ARGUMENT_BYTES;
                let argument = ring_argument(&self.original, memory).and_then(|mut argument| {
                    argument[RING_TIME_AT..RING_TIME_AT + 8].copy_from_slice(&time_avma.to_le_bytes());
                    memory.write(time_avma, &time).ok()?;
                    memory.write(argument_avma, &argument).ok()
                });
                if argument.is_some() {
                    registers.set_argument(4, argument_avma);
                }
            }
        }
    }
}

/// Offset of the time-out's address in the argument of `io_uring_enter`.
const RING_TIME_AT: usize = 16;

/// Reads that argument, if it has a relative time-out.
fn ring_argument(registers: &Registers, memory: &ProcessMemory) -> Option<Vec<u8>> {
    const HAS_ARGUMENT: u64 = 1 << 3;
    const IS_ABSOLUTE: u64 = 1 << 5;
    const IS_REGISTERED: u64 = 1 << 6;
    let [_, _, _, flags, address_avma, bytes] = registers.arguments();
    let is_known = flags & (HAS_ARGUMENT | IS_ABSOLUTE | IS_REGISTERED) == HAS_ARGUMENT;
    let bytes = bytes as usize;
    let has_room = (RING_TIME_AT + 8..=RING_ARGUMENT_BYTES as usize).contains(&bytes);
    (is_known && has_room).then(|| memory.read_vec(address_avma, bytes).ok()).flatten()
}

/// Full time-out of a call.
fn whole_time(limit: Limit, registers: &Registers, memory: &ProcessMemory) -> Option<Duration> {
    let given = registers.arguments();
    let time_at = |time_avma: u64| {
        let bytes = memory.read_vec(time_avma, TIME_BYTES as usize).ok()?;
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Some(Duration::new(word(0)?, u32::try_from(word(8)?).ok().filter(|&nanos| nanos < 1_000_000_000)?))
    };
    match limit {
        Limit::None => None,
        Limit::Milliseconds(place) => u64::try_from(given[place] as i32).ok().map(Duration::from_millis),
        Limit::TimeSpec(place) => Some(given[place]).filter(|&avma| avma != 0).and_then(time_at),
        Limit::RingArgument => {
            let argument = ring_argument(registers, memory)?;
            let word = argument.get(RING_TIME_AT..RING_TIME_AT + 8)?.try_into().ok();
            word.map(u64::from_le_bytes).filter(|&avma| avma != 0).and_then(time_at)
        }
    }
    // Durations beyond the clock's range count as for ever.
    .filter(|whole| Instant::now().checked_add(*whole).is_some())
}

fn is_socket(tid: u32, descriptor: u64) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let place = format!("/proc/{tid}/fd/{}", descriptor as u32);
    std::fs::metadata(place).is_ok_and(|file| file.file_type().is_socket())
}
