//! Making a stopped thread of the target do something: system calls, and calls of functions.
//!
//! ```text
//!             SETREGS             PTRACE_SYSCALL      PTRACE_SYSCALL      (next, or bring_home)
//! stopped ------------> borrowed ---------------> entry ---------------> exit
//! ```
//!
//! At each of these points the thread, let go by the kernel because we were killed, would finish
//! what it is at and come back through [`return_frame`]. No signal handler runs on a borrowed
//! thread: its mask blocks all signals meanwhile.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::made_to_die;
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::ptrace::{self, Event};
use crate::stop::StoppedThread;
use crate::urgency::Urgency;
use crate::x86_64::{FRAME_BYTES_MAX, Registers, return_frame};

/// Instructions of the target's C library that are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gadgets {
    /// `syscall; ret`.
    pub(crate) system_call_avma: u64,
    /// `mov rax, 15; syscall`.
    pub(crate) sigreturn_avma: u64,
}

/// A thread of the target on loan. Bring it home; dropping it does so too.
#[derive(Debug)]
pub(crate) struct Borrowed<'a> {
    pid: u32,
    memory: &'a ProcessMemory,
    gadgets: Gadgets,
    tid: u32,
    original: Registers,
    extended_state: Vec<u8>,
    signal_mask: u64,
    /// Where the return frame begins now.
    frame_avma: u64,
    /// What it comes back through before the frame: what `r13` is meanwhile.
    tidied_by: Option<u64>,
    is_home: bool,
    is_urgent: bool,
    /// What it has made by its last `clone`.
    made_tid: Option<u32>,
}

pub(crate) const SYS_MUNMAP: u64 = 11;
/// Room for a frame without vector registers.
pub(crate) const SMALL_FRAME_BYTES: u64 = 2048;

/// Longest that one call may take. They are short; a swapped-out page may be waited for.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Looks before a thread is waited for by sleeping: some milliseconds.
const YIELDS: u32 = 5000;
/// Looks if we go before all other threads: some ten microseconds, after which a target on our
/// processor must get it.
const LOOKS_IF_URGENT: u32 = 50;
/// Two addresses that lead to what tidies up.
const TIDYING_BYTES: u64 = 16;
/// Below the stack pointer: leaf functions keep data there.
const RED_ZONE_BYTES: u64 = 128;
/// All signals but those that cannot be blocked.
const ALL_SIGNALS: u64 = u64::MAX;
const SIGRETURN: u64 = 15;

impl<'a> Borrowed<'a> {
    /// Borrows a stopped thread. Its return frame goes below its stack pointer at first.
    pub(crate) fn new(
        pid: u32,
        memory: &'a ProcessMemory,
        gadgets: Gadgets,
        thread: &StoppedThread,
    ) -> Result<Self> {
        let tid = thread.tid;
        let trace = |call: &'static str| move |source| Error::Trace { pid, call, source };
        let mut borrowed = Self {
            pid,
            memory,
            gadgets,
            tid,
            original: thread.registers,
            extended_state: ptrace::extended_state(tid).map_err(trace("PTRACE_GETREGSET"))?,
            signal_mask: ptrace::signal_mask(tid).map_err(trace("PTRACE_GETSIGMASK"))?,
            frame_avma: 0,
            tidied_by: None,
            is_home: true,
            is_urgent: Urgency::is_on(),
            made_tid: None,
        };
        let below = thread.registers.rsp.saturating_sub(RED_ZONE_BYTES + FRAME_BYTES_MAX);
        borrowed.place_frame(below & !63)?;
        Ok(borrowed)
    }

    /// Bytes below the stack pointer that must be mapped.
    pub(crate) const STACK_BYTES: u64 = RED_ZONE_BYTES + FRAME_BYTES_MAX + 64 + 5 * SMALL_FRAME_BYTES;

    /// Writes the return frame at `rsp_avma` (aligned to 16); calls use the stack below it from now
    /// on.
    pub(crate) fn place_frame(&mut self, rsp_avma: u64) -> Result<()> {
        let home = self.original.restarted();
        let frame = return_frame(
            rsp_avma,
            self.gadgets.sigreturn_avma,
            &home,
            self.signal_mask,
            &self.extended_state,
        );
        let pid = self.pid;
        self.memory.write(rsp_avma, &frame).map_err(|source| Error::Memory { pid, source })?;
        self.frame_avma = rsp_avma;
        self.tidied_by = None;
        Ok(())
    }

    /// From now on, until a frame is placed, whatever it runs is followed by the code at
    /// `code_avma`, with this `r13`, before it comes back. `ret_avma`: a `ret`.
    pub(crate) fn tidy_by(&mut self, code_avma: u64, ret_avma: u64, r13: u64) -> Result<()> {
        let words = [code_avma.to_le_bytes(), ret_avma.to_le_bytes()].concat();
        let pid = self.pid;
        let write = self.memory.write(self.frame_avma - TIDYING_BYTES, &words);
        write.map_err(|source| Error::Memory { pid, source })?;
        self.tidied_by = Some(r13);
        Ok(())
    }

    /// Where the stack of what it runs begins.
    fn rsp_avma(&self) -> u64 {
        self.frame_avma - self.tidied_by.map_or(0, |_| TIDYING_BYTES)
    }

    /// Where the return frame begins.
    pub(crate) fn frame_avma(&self) -> u64 {
        self.frame_avma
    }

    /// Its number.
    pub(crate) fn tid(&self) -> u32 {
        self.tid
    }

    /// The thread's descriptor.
    pub(crate) fn fs_base(&self) -> u64 {
        self.original.fs_base
    }

    fn trace<T>(&self, call: &'static str, outcome: std::io::Result<T>) -> Result<T> {
        outcome.map_err(|source| Error::Trace { pid: self.pid, call, source })
    }

    /// Waits for the thread's next stop at a system call.
    fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + CALL_LIMIT;
        let mut look_count = 0_u32;
        loop {
            match self.trace("waitpid", ptrace::poll(self.tid))? {
                Some(Event::SystemCall) => return Ok(()),
                Some(Event::Ended) => return Err(Error::Ended { pid: self.pid }),
                Some(Event::Cloned) => {
                    let made = ptrace::event_message(self.tid);
                    self.made_tid = Some(self.trace("PTRACE_GETEVENTMSG", made)?);
                    self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
                }
                // A stop of the whole process: it is seen again when the thread goes home.
                Some(Event::Interrupted | Event::Executed) => {
                    self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
                }
                // It cannot be blocked: the process stops when we are done.
                Some(Event::Signal(libc::SIGSTOP)) => {
                    let outcome = ptrace::go_to_system_call_with(self.tid, libc::SIGSTOP);
                    self.trace("PTRACE_SYSCALL", outcome)?;
                }
                // A fault of the code that we run.
                Some(Event::Signal(signal)) => {
                    return Err(Error::Malformed {
                        pid: self.pid,
                        what: "signal in code of the agent",
                        address_avma: ptrace::registers(self.tid).map_or(0, |registers| registers.rip),
                        value: signal as u64,
                    });
                }
                None if Instant::now() > deadline => {
                    return Err(Error::NoQuietMoment {
                        pid: self.pid,
                        seconds: CALL_LIMIT.as_secs(),
                        reason: "a call in it did not come back".to_owned(),
                    });
                }
                None => self.let_it_run(&mut look_count),
            }
        }
    }

    /// It comes back within microseconds, mostly; a sleep would make the target wait for longer
    /// than that.
    fn let_it_run(&self, look_count: &mut u32) {
        *look_count += 1;
        if *look_count > if self.is_urgent { LOOKS_IF_URGENT } else { YIELDS } {
            std::thread::sleep(pause_before_look(*look_count));
        } else {
            std::thread::yield_now();
        }
    }

    fn begin(&mut self, registers: &Registers) -> Result<()> {
        self.is_home = false;
        // In this order: the way back gives the thread its own mask.
        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, registers))?;
        self.trace("PTRACE_SETSIGMASK", ptrace::set_signal_mask(self.tid, ALL_SIGNALS))?;
        made_to_die::moment(self.pid);
        self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        self.wait()?;
        made_to_die::moment(self.pid);
        Ok(())
    }

    /// Makes a system call. Its answer, or the error number.
    pub(crate) fn system_call(
        &mut self,
        number: u64,
        arguments: [u64; 6],
    ) -> Result<std::result::Result<u64, i32>> {
        let mut registers = self.calling(number, arguments, self.rsp_avma());
        registers.r13 = self.tidied_by.unwrap_or(registers.r13);
        self.make_call(&registers)
    }

    /// Makes the system call of [`Self::calling`]. Its answer, or the error number.
    pub(crate) fn make_call(&mut self, registers: &Registers) -> Result<std::result::Result<u64, i32>> {
        self.begin(registers)?;
        self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        self.wait()?;
        let answer = self.trace("PTRACE_GETREGS", ptrace::registers(self.tid))?.rax.cast_signed();
        Ok(if (-4095..0).contains(&answer) { Err(-answer as i32) } else { Ok(answer.cast_unsigned()) })
    }

    /// Registers for a system call after which it goes on by what lies at `rsp_avma`.
    pub(crate) fn calling(&self, number: u64, arguments: [u64; 6], rsp_avma: u64) -> Registers {
        let mut registers = self.original.going_to(self.gadgets.system_call_avma, rsp_avma);
        registers.rax = number;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = arguments;
        registers
    }

    /// Writes a frame below the return frame by which a thread gets other registers, with all
    /// signals blocked.
    pub(crate) fn place_small_frame(&self, rsp_avma: u64, registers: &Registers) -> Result<()> {
        let frame = return_frame(rsp_avma, self.gadgets.sigreturn_avma, registers, ALL_SIGNALS, &[]);
        let pid = self.pid;
        self.memory.write(rsp_avma, &frame).map_err(|source| Error::Memory { pid, source })
    }

    /// A word of its memory.
    pub(crate) fn read_word(&self, address_avma: u64) -> Result<u64> {
        let pid = self.pid;
        self.memory.read_u64(address_avma).map_err(|source| Error::Memory { pid, source })
    }

    /// Writes a word of its memory, below its stack.
    pub(crate) fn write_word(&self, address_avma: u64, word: u64) -> Result<()> {
        let pid = self.pid;
        let write = self.memory.write(address_avma, &word.to_le_bytes());
        write.map_err(|source| Error::Memory { pid, source })
    }

    /// Has it make a process, which we trace from its first moment on. Should we be killed it goes
    /// on by the frame at `rsp_avma`. Gives its number as we and as the process number it.
    pub(crate) fn clone_itself(
        &mut self,
        arguments: [u64; 6],
        rsp_avma: u64,
    ) -> Result<std::result::Result<(u32, u64), i32>> {
        const SYS_CLONE: u64 = 56;
        self.trace("PTRACE_SETOPTIONS", ptrace::follow_clones(self.tid, true))?;
        let answer = self.make_call(&self.calling(SYS_CLONE, arguments, rsp_avma));
        self.trace("PTRACE_SETOPTIONS", ptrace::follow_clones(self.tid, false))?;
        match (answer?, self.made_tid.take()) {
            (Ok(inner_tid), Some(tid)) => Ok(Ok((tid, inner_tid))),
            (Err(errno), _) => Ok(Err(errno)),
            (Ok(_), None) => Err(Error::Ended { pid: self.pid }),
        }
    }

    /// As [`Self::system_call`], with an error for the caller.
    pub(crate) fn call_system(
        &mut self,
        call: &'static str,
        number: u64,
        arguments: [u64; 6],
    ) -> Result<u64> {
        self.system_call(number, arguments)?.map_err(|errno| Error::RemoteCall { pid: self.pid, call, errno })
    }

    /// Calls a function through `stub` (`call r12; mov [r13], rax; ret`, or more), and returns what
    /// it answered.
    pub(crate) fn call_function(
        &mut self,
        stub_avma: u64,
        answer_avma: u64,
        function_avma: u64,
        arguments: [u64; 3],
    ) -> Result<u64> {
        let mut registers = self.original.going_to(stub_avma, self.rsp_avma());
        registers.r12 = function_avma;
        registers.r13 = answer_avma;
        registers.rbp = 0;
        registers.rax = 0;
        [registers.rdi, registers.rsi, registers.rdx] = arguments;
        self.run(&registers)?;
        let pid = self.pid;
        self.memory.read_u64(answer_avma).map_err(|source| Error::Memory { pid, source })
    }

    /// Runs code that ends by a `ret` to the system call `last`, and by the way home behind that.
    pub(crate) fn run_to_last_call(
        &mut self,
        code_avma: u64,
        set: impl FnOnce(&mut Registers),
    ) -> Result<()> {
        let last_avma = self.rsp_avma() - 8;
        self.write_word(last_avma, self.gadgets.system_call_avma)?;
        let mut registers = self.original.going_to(code_avma, last_avma);
        set(&mut registers);
        self.run(&registers)
    }

    /// Lets it run through all system calls until it enters the one that ends it all, and out of
    /// that.
    fn run(&mut self, registers: &Registers) -> Result<()> {
        self.begin(registers)?;
        loop {
            made_to_die::moment(self.pid);
            let now = self.trace("PTRACE_GETREGS", ptrace::registers(self.tid))?;
            let is_end = now.orig_rax == SIGRETURN && now.rsp == self.frame_avma + 8;
            if is_end {
                // A return from a signal handler makes the kernel forget how long an interrupted
                // sleep still has to last. In its place a call that does nothing, and the way to
                // the return behind it, should we be killed.
                let mut registers = now;
                registers.rip = self.gadgets.sigreturn_avma;
                (registers.orig_rax, registers.rdi, registers.rsi) = (SYS_MUNMAP, 0, 0);
                self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, &registers))?;
            }
            self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
            self.wait()?;
            if is_end {
                return Ok(());
            }
            // From the exit to the next entry.
            self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
            self.wait()?;
        }
    }

    /// Gives the thread back its own registers and lets it stand where it stood.
    pub(crate) fn bring_home(mut self) -> Result<()> {
        self.go_home()
    }

    fn go_home(&mut self) -> Result<()> {
        if self.is_home {
            return Ok(());
        }
        self.is_home = true;
        // The interrupt is pending when the thread goes on, so that it runs no code of the program
        // and stops where the kernel will think of the interrupted system call again. The order
        // matters if we are killed in between.
        self.trace("PTRACE_INTERRUPT", ptrace::interrupt(self.tid))?;
        self.trace("PTRACE_SETSIGMASK", ptrace::set_signal_mask(self.tid, self.signal_mask))?;
        self.trace("PTRACE_SETREGSET", ptrace::set_extended_state(self.tid, &self.extended_state))?;
        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, &self.original))?;
        self.trace("PTRACE_CONT", ptrace::go_on(self.tid, 0))?;
        let deadline = Instant::now() + CALL_LIMIT;
        let mut look_count = 0_u32;
        loop {
            match self.trace("waitpid", ptrace::poll(self.tid))? {
                Some(Event::Interrupted) => return Ok(()),
                Some(Event::Ended) => return Err(Error::Ended { pid: self.pid }),
                Some(Event::Signal(signal)) => self.trace("PTRACE_CONT", ptrace::go_on(self.tid, signal))?,
                Some(Event::SystemCall | Event::Executed | Event::Cloned) => {
                    self.trace("PTRACE_CONT", ptrace::go_on(self.tid, 0))?;
                }
                None if Instant::now() > deadline => return Err(Error::Ended { pid: self.pid }),
                None => self.let_it_run(&mut look_count),
            }
        }
    }
}

/// How long to wait before the next look at a thread that was looked at so often: a call that takes
/// milliseconds is held up by looks, and gains nothing from more of them.
pub(crate) fn pause_before_look(look_count: u32) -> Duration {
    Duration::from_micros(20 + u64::from(look_count.saturating_sub(LOOKS_IF_URGENT)).min(180))
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        drop(self.go_home());
    }
}
