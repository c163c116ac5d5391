//! The ptrace requests in use, as functions with errors.

use std::io;

use heapr_wire::seccomp::Instruction;

use crate::arch::{self, Registers};
use crate::ptrace_request::{Request, request};

/// Report of a stopped thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// `PTRACE_EVENT_STOP`: by an interrupt request, or a signal stopped the whole process.
    Interrupted,
    /// Entry or exit of a system call.
    SystemCall,
    /// Start of another program, before its first instruction.
    Executed,
    /// Creation of a process, whose id is the event's message.
    Cloned,
    /// A signal is about to be delivered.
    Signal(i32),
    /// The thread has ended.
    Ended,
}

const PTRACE_EVENT_STOP: i32 = 128;

/// Begins to trace a thread without stopping it. When the tracer dies, the thread runs on.
pub(crate) fn seize(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, libc::PTRACE_O_TRACESYSGOOD as usize)
}

/// Begins to trace a thread like [`seize`], and stops it when it execs.
pub(crate) fn seize_until_exec(tid: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Turns on or off the tracing of processes that a stopped thread clones: from their first
/// instruction on, and reported.
pub(crate) fn follow_clones(tid: u32, is_on: bool) -> io::Result<()> {
    let more = if is_on { libc::PTRACE_O_TRACECLONE } else { 0 };
    request(libc::PTRACE_SETOPTIONS, tid, 0, (libc::PTRACE_O_TRACESYSGOOD | more) as usize)
}

/// Makes the kernel kill a stopped thread when this process ends.
pub(crate) fn end_with_us(tid: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, tid, 0, options as usize)
}

/// Message of a stopped thread's last event: the id of the process that it has created.
pub(crate) fn event_message(tid: u32) -> io::Result<u32> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message as u32)
}

/// Kills a process.
pub(crate) fn kill(pid: u32) {
    // SAFETY: it only takes numbers.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}

/// Requests a thread to stop.
pub(crate) fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Resumes a thread, delivering `signal` (0: no signal).
pub(crate) fn go_on(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Resumes a thread until the next entry or exit of a system call.
pub(crate) fn go_to_system_call(tid: u32) -> io::Result<()> {
    go_to_system_call_with(tid, 0)
}

/// Resumes a thread until the next entry or exit of a system call, delivering a signal.
pub(crate) fn go_to_system_call_with(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Ends the tracing of a stopped thread, which resumes.
pub(crate) fn detach(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0)
}

/// True if a process is a child of this one and has ended: its status is left for the code that
/// started it.
fn is_own_ended_child(tid: u32) -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the kernel writes one siginfo, plain data for which zeros are valid.
    let has_ended = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        // The call also reports stops of traced threads.
        let is_told = libc::waitid(libc::P_PID, tid, &raw mut info, options) == 0 && info.si_pid() != 0;
        is_told && matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED)
    };
    has_ended && heapr_proc::parent(tid) == Some(std::process::id())
}

/// Event of a thread, if one is pending.
pub(crate) fn poll(tid: u32) -> io::Result<Option<Event>> {
    if is_own_ended_child(tid) {
        return Ok(Some(Event::Ended));
    }
    let mut status = 0;
    // SAFETY: the kernel writes one status.
    let answer = unsafe { libc::waitpid(tid.cast_signed(), &raw mut status, libc::__WALL | libc::WNOHANG) };
    if answer == 0 {
        return Ok(None);
    }
    if answer < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(Some(Event::Ended)),
            Some(libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Some(Event::Ended));
    }
    let signal = libc::WSTOPSIG(status);
    Ok(Some(match status >> 16 {
        PTRACE_EVENT_STOP => Event::Interrupted,
        libc::PTRACE_EVENT_EXEC => Event::Executed,
        libc::PTRACE_EVENT_CLONE => Event::Cloned,
        _ if signal == libc::SIGTRAP | 0x80 => Event::SystemCall,
        _ => Event::Signal(signal),
    }))
}

/// Id of the calling thread, the only one whose requests its seized threads accept.
pub(crate) fn own_tid() -> u32 {
    // The C library's function exists since glibc 2.30; packages are linked for 2.28.
    // SAFETY: the call has no preconditions. The kernel's thread ids fit.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Reads the registers of a stopped thread.
pub(crate) fn registers(tid: u32) -> io::Result<Registers> {
    arch::read_registers(tid)
}

/// Sets the registers of a stopped thread.
pub(crate) fn set_registers(tid: u32, registers: &Registers) -> io::Result<()> {
    arch::write_registers(tid, registers)
}

/// Reads the floating-point and vector registers in the kernel's layout.
pub(crate) fn extended_state(tid: u32) -> io::Result<Vec<u8>> {
    arch::extended_state(tid)
}

/// Sets the floating-point and vector registers.
pub(crate) fn set_extended_state(tid: u32, bytes: &[u8]) -> io::Result<()> {
    arch::set_extended_state(tid, bytes)
}

/// Reads the signals that a stopped thread blocks.
pub(crate) fn signal_mask(tid: u32) -> io::Result<u64> {
    let mut mask = 0_u64;
    request(libc::PTRACE_GETSIGMASK as Request, tid, 8, &raw mut mask as usize)?;
    Ok(mask)
}

/// Sets the signals that a stopped thread blocks.
pub(crate) fn set_signal_mask(tid: u32, mask: u64) -> io::Result<()> {
    request(libc::PTRACE_SETSIGMASK as Request, tid, 8, &raw const mask as usize)
}

/// Reads the `number`th filter of a stopped thread.
///
/// # Errors
/// ENOENT: it has fewer filters. EINVAL: it has no filters. EACCES: the kernel shows them to
/// CAP_SYS_ADMIN only.
pub(crate) fn seccomp_filter(tid: u32, number: usize) -> io::Result<Vec<Instruction>> {
    const PTRACE_SECCOMP_GET_FILTER: Request = 0x420c;
    let get = |into: *mut Instruction| {
        // SAFETY: the kernel writes nothing to a null pointer, and otherwise as many instructions
        // as it reported.
        let answer = unsafe { libc::ptrace(PTRACE_SECCOMP_GET_FILTER, tid.cast_signed(), number, into) };
        usize::try_from(answer).map_err(|_| io::Error::last_os_error())
    };
    let count = get(std::ptr::null_mut())?;
    let mut filter = vec![Instruction::default(); count];
    // The thread is stopped: the filter is unchanged.
    get(filter.as_mut_ptr())?;
    Ok(filter)
}
