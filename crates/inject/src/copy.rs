//! Copy of a process's memory, made while it is stopped. The kernel copies page tables, and each
//! page only when it is written to.
//!
//! ```text
//! borrowed thread --clone--> first copy --clone (same memory)--> second copy
//!        waits for the first <-- ends                            stays stopped and is read
//!        resumes its own work                                    (child of the adopter of orphans)
//! ```
//! The copies never run code of the program, so that fork handlers, locks and threads do not
//! matter. They leave no trace in the process. The first has no exit signal, and its parent waits
//! for it; the second is not a child of the process.
//!
//! Should this process be killed meanwhile, each copy and the thread resume by a frame
//! ([`return_frame`]) below the thread's stack. The copies then exit; the thread waits for the
//! first one, restores its scheduling policy, and resumes its own work.

use std::time::{Duration, Instant};

use heapr_proc::ServedMemory;
use heapr_wire::seccomp::Call;

use crate::arch::Registers;
use crate::error::{Error, Result};
use crate::ptrace::{self, Event};
use crate::remote::{Borrowed, SMALL_FRAME_BYTES, pause_before_look};
use crate::seccomp;
use crate::stop::StoppedThread;
use crate::target;
use crate::urgency::{UrgentThread, make_urgent};

const CLONE_VM: u64 = 0x100;
/// Avoids second references to sockets and pipes, which would hide their closing from other
/// processes.
const CLONE_FILES: u64 = 0x400;
const CLOSE_RANGE_UNSHARE: u64 = 2;
/// Selects children of this thread without an exit signal.
const WAIT_CLONES: u64 = 0x8000_0000 | 0x2000_0000;
const WAIT_ALL: u64 = 0x4000_0000;
const PR_GET_CHILD_SUBREAPER: u64 = 37;
/// Divisor of the copied memory: the process's memory group must have this fraction of it left. The
/// worst case is more.
const ROOM_SHARE: u64 = 8;
/// Largest process, in bytes, whose copying has priority. The copy of a larger one takes so long
/// that other processes must run meanwhile.
const URGENT_BYTES_MAX: u64 = 16 << 30;
/// Longest duration of one step of a copy.
const STEP_LIMIT: Duration = Duration::from_secs(5);

/// System calls that threads of the target make for a copy.
const CALLS: &[Call] = &[
    Call::new("clone", libc::SYS_clone as u32, [CLONE_FILES, 0, 0, 0, 0, 0]),
    Call::new("clone", libc::SYS_clone as u32, [CLONE_FILES | CLONE_VM, 0, 0, 0, 0, 0]),
    Call::new("wait4", libc::SYS_wait4 as u32, [u64::MAX, 0, WAIT_CLONES, 0, 0, 0]),
    Call::new("prctl", libc::SYS_prctl as u32, [PR_GET_CHILD_SUBREAPER, 0, 0, 0, 0, 0]),
    Call::new("exit_group", libc::SYS_exit_group as u32, [0; 6]),
    Call::new(
        "close_range",
        libc::SYS_close_range as u32,
        [0, u32::MAX as u64, CLOSE_RANGE_UNSHARE, 0, 0, 0],
    ),
    Call::new("rt_sigreturn", libc::SYS_rt_sigreturn as u32, [0; 6]),
];

/// An existing copy. It ends when this is dropped, or with this process.
#[derive(Debug)]
pub(crate) struct Copied {
    keeper: Child,
    gone_around: Registers,
}

/// Reason against copying a process, found without touching it. Its control group must have a
/// fraction of the worst-case memory left.
pub(crate) fn obstacle(pid: u32) -> Option<String> {
    if heapr_proc::inner_pid(pid) == 1 {
        return Some("it is the first process of its container, which a copy would be left to".to_owned());
    }
    if heapr_proc::is_frozen(pid) {
        return Some("its control group is frozen".to_owned());
    }
    if ServedMemory::of(pid, false).forks_wait {
        return Some(
            "it serves its own memory and is told of forks (userfaultfd), and would have to run for one"
                .to_owned(),
        );
    }
    let needed_bytes = room_needed(pid);
    let tightest = heapr_proc::memory_limits(pid).into_iter().min_by_key(|limit| limit.free_bytes)?;
    (tightest.free_bytes < needed_bytes).then(|| {
        format!(
            "its group {} is near its limit of memory: {} MiB are left, and a copy may take {} MiB at once",
            tightest.path,
            tightest.free_bytes >> 20,
            needed_bytes >> 20
        )
    })
}

/// True if a thread may have real-time priority while it copies. On a busy machine the process
/// would otherwise be stopped for many time slices of others.
pub(crate) fn may_be_urgent(pid: u32) -> bool {
    let status = heapr_proc::Fields::of_process(pid).ok();
    let bytes = status.and_then(|status| status.bytes("RssAnon"));
    // The kernel sends a signal to a real-time thread that runs longer than this limit.
    let has_time = heapr_proc::soft_limit(pid, "Max realtime timeout").is_none();
    has_time && bytes.is_some_and(|bytes| bytes <= URGENT_BYTES_MAX)
}

/// True if an existing copy should end because its control group has little memory left.
pub(crate) fn is_room_short(pid: u32) -> bool {
    let needed_bytes = room_needed(pid) / 2;
    heapr_proc::memory_limits(pid).iter().any(|limit| limit.free_bytes < needed_bytes)
}

fn room_needed(pid: u32) -> u64 {
    let status = heapr_proc::Fields::of_process(pid).ok();
    let bytes = |name| status.as_ref().and_then(|status| status.bytes(name)).unwrap_or(0);
    bytes("RssAnon") / ROOM_SHARE + bytes("VmPTE")
}

/// Reason why seccomp filters of stopped threads prevent a copy.
pub(crate) fn check_filters(pid: u32, threads: &[StoppedThread]) -> Option<String> {
    let outcome = seccomp::check(pid, threads.iter().map(|thread| thread.tid), &[CALLS]);
    outcome.err().map(|error| match error {
        Error::SeccompForbids { call, .. } => {
            format!("its seccomp filter would end it for the system call {call}")
        }
        _ => "it has a seccomp filter, which the kernel shows to root only".to_owned(),
    })
}

/// Copies a process by one of its stopped threads, or returns the reason against it. With
/// `may_be_urgent` the thread has real-time priority meanwhile; then no filter may forbid
/// `sched_setscheduler`.
pub(crate) fn copy(
    pid: u32,
    borrowed: &mut Borrowed<'_>,
    may_be_urgent: bool,
) -> Result<std::result::Result<Copied, &'static str>> {
    let frame_avma = borrowed.frame_avma();
    let places = [1, 2, 3, 4].map(|number| frame_avma - number * SMALL_FRAME_BYTES);
    let [restoring_avma, waiting_avma, first_avma, second_avma] = places;
    // Words below the lowest frame.
    let (answer_avma, priority_avma) = (second_avma - 64, second_avma - 128);
    let policy = UrgentThread::policy(borrowed.tid()).filter(|_| may_be_urgent);
    // Frame that follows the calls: the thread's own, or one that first restores its scheduling
    // policy.
    let after_avma = policy.map_or(frame_avma, |_| restoring_avma);
    if let Some(policy) = policy {
        borrowed.write_word(priority_avma, 0)?;
        let arguments = [0, u64::from(policy.cast_unsigned()), priority_avma, 0, 0, 0];
        let restores = borrowed.calling(libc::SYS_sched_setscheduler, arguments, frame_avma);
        borrowed.place_small_frame(restoring_avma, &restores)?;
    }
    let waits = borrowed.calling(libc::SYS_wait4, [u64::MAX, 0, WAIT_CLONES, 0, 0, 0], after_avma);
    borrowed.place_small_frame(waiting_avma, &waits)?;
    for place_avma in [first_avma, second_avma] {
        let ends = borrowed.calling(libc::SYS_exit_group, [0; 6], place_avma);
        borrowed.place_small_frame(place_avma, &ends)?;
    }
    let asks =
        borrowed.calling(libc::SYS_prctl, [PR_GET_CHILD_SUBREAPER, answer_avma, 0, 0, 0, 0], after_avma);
    if borrowed.make_call(&asks)?.is_err() || borrowed.read_word(answer_avma)? as u32 != 0 {
        return Ok(Err("it takes in orphaned processes, and would be sent a signal when the copy ends"));
    }
    // From here until this is dropped, the thread's return path includes the restoring frame.
    let _urgent = policy.and_then(|policy| UrgentThread::begin(borrowed.tid(), policy));
    let cloned = borrowed.clone_itself([CLONE_FILES, first_avma, 0, 0, 0, 0], waiting_avma)?;
    let (first_tid, inner_tid) = match cloned {
        Ok(cloned) => cloned,
        Err(libc::EAGAIN) => return Ok(Err("it may have no more processes")),
        Err(libc::ENOMEM) => return Ok(Err("the kernel has not enough memory for a copy")),
        Err(_) => return Ok(Err("the kernel does not allow it to make a copy")),
    };
    let first = Child { pid, tid: first_tid };
    make_urgent(first_tid);
    let ends = borrowed.calling(libc::SYS_exit_group, [0; 6], first_avma);
    let clones =
        borrowed.calling(libc::SYS_clone, [CLONE_FILES | CLONE_VM, second_avma, 0, 0, 0, 0], first_avma);
    let keeper = first.split(&clones);
    // The first copy's return path leads to its exit.
    if keeper.is_err() || ptrace::detach(first_tid).is_err() {
        first.end();
    }
    let waits = borrowed.calling(libc::SYS_wait4, [inner_tid, 0, WAIT_ALL, 0, 0, 0], after_avma);
    borrowed.make_call(&waits)?.ok();
    let keeper = keeper?;
    Ok(Ok(Copied { keeper, gone_around: ends }))
}

impl Copied {
    /// Process id of the copy.
    pub(crate) fn number(&self) -> u32 {
        self.keeper.tid
    }

    /// True unless another process has killed the copy: the kernel for want of memory, or the end
    /// of its container.
    pub(crate) fn is_there(&self) -> bool {
        !target::has_ended(self.keeper.tid, self.keeper.tid)
    }

    /// Releases all that the copy shares with the process except memory, and makes it the first to
    /// be killed if memory runs out. Called when the process runs again.
    pub(crate) fn settle_down(&self) {
        let folder = heapr_proc::folder(self.keeper.tid);
        // Without permission, the copy is as likely to be killed as any other process.
        let _ = std::fs::write(folder.join("oom_score_adj"), "1000");
        let mut closes = self.gone_around;
        let arguments = [0, u64::from(u32::MAX), CLOSE_RANGE_UNSHARE, 0, 0, 0];
        closes.set_system_call(libc::SYS_close_range, arguments);
        // Kernels before 5.9 lack the call: descriptors are then shared until the copy ends.
        let _ = self.keeper.call(&closes);
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.keeper.end();
    }
}

/// A copy, traced by this process since its creation.
#[derive(Debug)]
struct Child {
    /// Id of the copied process.
    pid: u32,
    tid: u32,
}

impl Child {
    fn trace<T>(&self, call: &'static str, outcome: std::io::Result<T>) -> Result<T> {
        outcome.map_err(|source| Error::Trace { pid: self.pid, call, source })
    }

    /// Waits for the next stop.
    fn wait(&self) -> Result<Event> {
        let deadline = Instant::now() + STEP_LIMIT;
        let mut look_count = 0_u32;
        loop {
            match self.trace("waitpid", ptrace::poll(self.tid))? {
                Some(Event::Ended) => return Err(Error::Ended { pid: self.pid }),
                Some(event) => return Ok(event),
                None if Instant::now() > deadline => {
                    let reason = "its copy did not stand still".to_owned();
                    return Err(Error::NoQuietMoment {
                        pid: self.pid,
                        seconds: STEP_LIMIT.as_secs(),
                        reason,
                    });
                }
                None => {
                    look_count += 1;
                    if look_count > 50 {
                        std::thread::sleep(pause_before_look(look_count));
                    } else {
                        std::thread::yield_now();
                    }
                }
            }
        }
    }

    fn wait_for(&self, wanted: Event) -> Result<()> {
        while self.wait()? != wanted {
            self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        }
        Ok(())
    }

    /// Makes the copy perform a system call, and stops it at the call's end.
    fn call(&self, registers: &Registers) -> Result<Option<u32>> {
        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, registers))?;
        self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        self.wait_for(Event::SystemCall)?;
        let mut made = None;
        loop {
            self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
            match self.wait()? {
                Event::SystemCall => return Ok(made),
                Event::Cloned => {
                    made = Some(self.trace("PTRACE_GETEVENTMSG", ptrace::event_message(self.tid))?);
                }
                _ => {}
            }
        }
    }

    /// Makes the first copy create the second one.
    fn split(&self, clones: &Registers) -> Result<Self> {
        self.wait_for(Event::Interrupted)?;
        let tid = self.call(clones)?.ok_or(Error::RemoteCall {
            pid: self.pid,
            call: "clone",
            errno: libc::EAGAIN,
        })?;
        let second = Self { pid: self.pid, tid };
        let outcome = second.wait_for(Event::Interrupted);
        let outcome = outcome.and_then(|()| second.trace("PTRACE_SETOPTIONS", ptrace::end_with_us(tid)));
        match outcome {
            Ok(()) => Ok(second),
            Err(error) => {
                second.end();
                Err(error)
            }
        }
    }

    /// Kills the copy, and reaps it as its tracer, so that its parent can reap it too.
    fn end(&self) {
        ptrace::kill(self.tid);
        let deadline = Instant::now() + STEP_LIMIT;
        while !matches!(ptrace::poll(self.tid), Ok(Some(Event::Ended)) | Err(_)) && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
