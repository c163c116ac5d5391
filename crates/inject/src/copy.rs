//! A copy of a process's memory, made while it stands still: the kernel copies page tables, and
//! pages only once somebody writes to them.
//!
//! ```text
//! borrowed thread --clone--> first copy --clone (same memory)--> second copy
//!        waits for the first <-- ends                             stands still and is read;
//!        goes home                                                its parent: who takes in orphans
//! ```
//! Neither copy ever runs code of the program: handlers of fork, locks and threads do not matter.
//! Nothing of them is left in the process: the first has no signal for its parent, which waits for
//! it; the second is no child of the process.
//!
//! Should we be killed in the middle, each goes on by a frame ([`return_frame`]) that lies below
//! the thread's stack: the copies end themselves, the thread waits for the first one, takes back
//! the precedence that it had meanwhile, and goes home.

use std::time::{Duration, Instant};

use heapr_proc::ServedMemory;
use heapr_wire::seccomp::Call;

use crate::error::{Error, Result};
use crate::ptrace::{self, Event};
use crate::remote::{Borrowed, SMALL_FRAME_BYTES, pause_before_look};
use crate::seccomp;
use crate::stop::StoppedThread;
use crate::target;
use crate::urgency::{UrgentThread, make_urgent};
use crate::x86_64::Registers;

const SYS_CLONE: u64 = 56;
const SYS_WAIT4: u64 = 61;
const SYS_SCHED_SETSCHEDULER: u64 = 144;
const SYS_PRCTL: u64 = 157;
const SYS_EXIT_GROUP: u64 = 231;
const SYS_CLOSE_RANGE: u64 = 436;
const CLONE_VM: u64 = 0x100;
/// No second reference to sockets and pipes: others would not see that they are closed.
const CLONE_FILES: u64 = 0x400;
const CLOSE_RANGE_UNSHARE: u64 = 2;
/// Any child of this thread that has no signal for its parent.
const WAIT_CLONES: u64 = 0x8000_0000 | 0x2000_0000;
const WAIT_ALL: u64 = 0x4000_0000;
const PR_GET_CHILD_SUBREAPER: u64 = 37;
/// What a program's memory group must have left: a part of what is copied at the worst.
const ROOM_SHARE: u64 = 8;
/// Of a larger process the copy takes so long that others must have their turn meanwhile.
const URGENT_BYTES_MAX: u64 = 16 << 30;
/// Longest that a step of a copy may take.
const STEP_LIMIT: Duration = Duration::from_secs(5);

/// What a copy has threads of the target call.
const CALLS: &[Call] = &[
    Call::new("clone", SYS_CLONE as u32, [CLONE_FILES, 0, 0, 0, 0, 0]),
    Call::new("clone", SYS_CLONE as u32, [CLONE_FILES | CLONE_VM, 0, 0, 0, 0, 0]),
    Call::new("wait4", SYS_WAIT4 as u32, [u64::MAX, 0, WAIT_CLONES, 0, 0, 0]),
    Call::new("prctl", SYS_PRCTL as u32, [PR_GET_CHILD_SUBREAPER, 0, 0, 0, 0, 0]),
    Call::new("exit_group", SYS_EXIT_GROUP as u32, [0; 6]),
    Call::new("close_range", SYS_CLOSE_RANGE as u32, [0, u32::MAX as u64, CLOSE_RANGE_UNSHARE, 0, 0, 0]),
    Call::new("rt_sigreturn", 15, [0; 6]),
];

/// A copy that is there. It ends when this is dropped, or with us.
#[derive(Debug)]
pub(crate) struct Copied {
    keeper: Child,
    gone_around: Registers,
}

/// What speaks against copying a process, found without touching it; what its group may still take
/// must cover a part of what a copy costs at the worst.
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

/// Whether one of its threads may go before all others while it copies: on a busy machine the
/// process would else stand still for many turns of them.
pub(crate) fn may_be_urgent(pid: u32) -> bool {
    let status = heapr_proc::Fields::of_process(pid).ok();
    let bytes = status.and_then(|status| status.bytes("RssAnon"));
    // The kernel sends a signal to who runs before others for longer than it may.
    let has_time = heapr_proc::soft_limit(pid, "Max realtime timeout").is_none();
    has_time && bytes.is_some_and(|bytes| bytes <= URGENT_BYTES_MAX)
}

/// Whether a copy that is there is to go: what its group may still take has become little.
pub(crate) fn is_room_short(pid: u32) -> bool {
    let needed_bytes = room_needed(pid) / 2;
    heapr_proc::memory_limits(pid).iter().any(|limit| limit.free_bytes < needed_bytes)
}

fn room_needed(pid: u32) -> u64 {
    let status = heapr_proc::Fields::of_process(pid).ok();
    let bytes = |name| status.as_ref().and_then(|status| status.bytes(name)).unwrap_or(0);
    bytes("RssAnon") / ROOM_SHARE + bytes("VmPTE")
}

/// What filters of stopped threads have against it.
pub(crate) fn check_filters(pid: u32, threads: &[StoppedThread]) -> Option<String> {
    let outcome = seccomp::check(pid, threads.iter().map(|thread| thread.tid), &[CALLS]);
    outcome.err().map(|error| match error {
        Error::SeccompForbids { call, .. } => {
            format!("its seccomp filter would end it for the system call {call}")
        }
        _ => "it has a seccomp filter, which the kernel shows to root only".to_owned(),
    })
}

/// Copies a process by one of its stopped threads, which may go before others meanwhile: then none
/// of its filters forbids `sched_setscheduler`. The reason, where it cannot be copied.
pub(crate) fn copy(
    pid: u32,
    borrowed: &mut Borrowed<'_>,
    may_be_urgent: bool,
) -> Result<std::result::Result<Copied, &'static str>> {
    let frame_avma = borrowed.frame_avma();
    let places = [1, 2, 3, 4].map(|number| frame_avma - number * SMALL_FRAME_BYTES);
    let [restoring_avma, waiting_avma, first_avma, second_avma] = places;
    // Words below the frame that is used last.
    let (answer_avma, priority_avma) = (second_avma - 64, second_avma - 128);
    let policy = UrgentThread::policy(borrowed.tid()).filter(|_| may_be_urgent);
    // What comes after its calls: home, or first back to its own policy.
    let after_avma = policy.map_or(frame_avma, |_| restoring_avma);
    if let Some(policy) = policy {
        borrowed.write_word(priority_avma, 0)?;
        let arguments = [0, u64::from(policy.cast_unsigned()), priority_avma, 0, 0, 0];
        let restores = borrowed.calling(SYS_SCHED_SETSCHEDULER, arguments, frame_avma);
        borrowed.place_small_frame(restoring_avma, &restores)?;
    }
    let waits = borrowed.calling(SYS_WAIT4, [u64::MAX, 0, WAIT_CLONES, 0, 0, 0], after_avma);
    borrowed.place_small_frame(waiting_avma, &waits)?;
    for place_avma in [first_avma, second_avma] {
        let ends = borrowed.calling(SYS_EXIT_GROUP, [0; 6], place_avma);
        borrowed.place_small_frame(place_avma, &ends)?;
    }
    let asks = borrowed.calling(SYS_PRCTL, [PR_GET_CHILD_SUBREAPER, answer_avma, 0, 0, 0, 0], after_avma);
    if borrowed.make_call(&asks)?.is_err() || borrowed.read_word(answer_avma)? as u32 != 0 {
        return Ok(Err("it takes in orphaned processes, and would be sent a signal when the copy ends"));
    }
    // From here on, until it is dropped, its way home leads past what takes it back.
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
    let ends = borrowed.calling(SYS_EXIT_GROUP, [0; 6], first_avma);
    let clones = borrowed.calling(SYS_CLONE, [CLONE_FILES | CLONE_VM, second_avma, 0, 0, 0, 0], first_avma);
    let keeper = first.split(&clones);
    // Its way back leads to its end.
    if keeper.is_err() || ptrace::detach(first_tid).is_err() {
        first.end();
    }
    let waits = borrowed.calling(SYS_WAIT4, [inner_tid, 0, WAIT_ALL, 0, 0, 0], after_avma);
    borrowed.make_call(&waits)?.ok();
    let keeper = keeper?;
    Ok(Ok(Copied { keeper, gone_around: ends }))
}

impl Copied {
    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.keeper.tid
    }

    /// Whether nobody else has ended it: who is short of memory, or the end of its container.
    pub(crate) fn is_there(&self) -> bool {
        !target::has_ended(self.keeper.tid, self.keeper.tid)
    }

    /// Lets go of all that it shares with the process but memory, and puts it first in line should
    /// memory run out. When the process runs again.
    pub(crate) fn settle_down(&self) {
        let folder = heapr_proc::folder(self.keeper.tid);
        // Whoever may not is no worse off than with any other process.
        let _ = std::fs::write(folder.join("oom_score_adj"), "1000");
        let mut closes = self.gone_around;
        closes.rax = SYS_CLOSE_RANGE;
        [closes.rdi, closes.rsi, closes.rdx] = [0, u64::from(u32::MAX), CLOSE_RANGE_UNSHARE];
        // A kernel before 5.9 has it not: then descriptors are shared until the copy ends.
        let _ = self.keeper.call(&closes);
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.keeper.end();
    }
}

/// A copy, which we trace since it was made.
#[derive(Debug)]
struct Child {
    /// Of what process.
    pid: u32,
    tid: u32,
}

impl Child {
    fn trace<T>(&self, call: &'static str, outcome: std::io::Result<T>) -> Result<T> {
        outcome.map_err(|source| Error::Trace { pid: self.pid, call, source })
    }

    /// Waits for its next stop.
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

    /// Has it make a system call; it stands still at its end.
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

    /// The first copy makes the second one.
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

    /// Ends it, and takes note of its end, so that its parent can.
    fn end(&self) {
        ptrace::kill(self.tid);
        let deadline = Instant::now() + STEP_LIMIT;
        while !matches!(ptrace::poll(self.tid), Ok(Some(Event::Ended)) | Err(_)) && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
