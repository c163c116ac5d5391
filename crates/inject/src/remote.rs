//! Remote execution in a stopped thread of the target: system calls, and calls of functions.
//!
//! ```text
//!             SETREGS             PTRACE_SYSCALL      PTRACE_SYSCALL      (next, or bring_home)
//! stopped ------------> borrowed ---------------> entry ---------------> exit
//! ```
//!
//! If this process is killed at any of these points, the kernel releases the thread. It then
//! finishes its current call and returns through [`return_frame`] to its own work. No signal
//! handler runs on a borrowed thread: its mask blocks all signals meanwhile.

use std::time::{Duration, Instant};

use heapr_known::machine::HERE;

use crate::arch::{FRAME_BYTES_MAX, IS_ONE_HIDDEN_AT_CALLS, Registers, return_frame, stub};
use crate::error::{Error, Result};
use crate::made_to_die;
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::ptrace::{self, Event};
use crate::stop::StoppedThread;
use crate::urgency::Urgency;

/// Addresses of instructions in the target's C library that a borrowed thread needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gadgets {
    /// Address of [`crate::arch::SYSTEM_CALL_CODE`].
    pub(crate) system_call_avma: u64,
    /// Address of [`crate::arch::SIGRETURN_CODE`].
    pub(crate) sigreturn_avma: u64,
}

/// A borrowed thread of the target. [`Self::bring_home`] returns it to its own state; dropping does
/// so too.
#[derive(Debug)]
pub(crate) struct Borrowed<'a> {
    pid: u32,
    memory: &'a ProcessMemory,
    gadgets: Gadgets,
    tid: u32,
    original: Registers,
    extended_state: Vec<u8>,
    signal_mask: u64,
    /// Address of the present return frame.
    frame_avma: u64,
    /// Code that tidies up before each return, and its scratch memory; see [`Self::tidy_by`].
    tidied_by: Option<Tidying>,
    is_home: bool,
    is_urgent: bool,
    /// Id of the process created by the last `clone`.
    made_tid: Option<u32>,
}

/// Code that runs before each return.
#[derive(Debug, Clone, Copy)]
struct Tidying {
    code_avma: u64,
    scratch_avma: u64,
}

/// Size in bytes of a frame without vector registers.
pub(crate) const SMALL_FRAME_BYTES: u64 = 2048;

/// Longest duration of one call. Calls are short, but may wait for a swapped-out page.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Number of polls before the wait for a thread sleeps: some milliseconds.
const YIELDS: u32 = 5000;
/// Number of polls if this thread precedes all others: some ten microseconds. Afterwards a target
/// on the same processor must get it.
const LOOKS_IF_URGENT: u32 = 50;
/// Sizes in bytes of addresses below the frame: those that lead to the tidying code, and the one
/// that leads to a last system call.
const TIDYING_BYTES: u64 = 8 * stub::TIDYING_WORDS as u64;
const LAST_CALL_BYTES: u64 = 8 * stub::LAST_CALL_WORDS as u64;
/// Mask of all signals; the kernel ignores those that cannot be blocked.
const ALL_SIGNALS: u64 = u64::MAX;

impl<'a> Borrowed<'a> {
    /// Borrows a stopped thread. Its return frame is first placed below its stack pointer.
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
        let below = thread.registers.sp().saturating_sub(HERE.red_zone_bytes + FRAME_BYTES_MAX);
        borrowed.place_frame(below & !63)?;
        Ok(borrowed)
    }

    /// Number of bytes below the stack pointer that must be mapped.
    pub(crate) const STACK_BYTES: u64 = HERE.red_zone_bytes + FRAME_BYTES_MAX + 64 + 5 * SMALL_FRAME_BYTES;

    /// Writes the return frame at `sp_avma` (aligned to 16); later calls use the stack below it.
    pub(crate) fn place_frame(&mut self, sp_avma: u64) -> Result<()> {
        let home = self.original.restarted();
        let frame =
            return_frame(sp_avma, self.gadgets.sigreturn_avma, &home, self.signal_mask, &self.extended_state);
        let pid = self.pid;
        self.memory.write(sp_avma, &frame).map_err(|source| Error::Memory { pid, source })?;
        self.frame_avma = sp_avma;
        self.tidied_by = None;
        Ok(())
    }

    /// Makes the thread run the part of the stub at `code_avma`, with this scratch memory, before
    /// each return, until a frame is placed. `ret_avma` is the address of a `ret`.
    pub(crate) fn tidy_by(&mut self, code_avma: u64, ret_avma: u64, scratch_avma: u64) -> Result<()> {
        let words = [code_avma.to_le_bytes(), ret_avma.to_le_bytes()].concat();
        let pid = self.pid;
        let write = self.memory.write(self.frame_avma - TIDYING_BYTES, &words[..TIDYING_BYTES as usize]);
        write.map_err(|source| Error::Memory { pid, source })?;
        self.tidied_by = Some(Tidying { code_avma, scratch_avma });
        Ok(())
    }

    /// Initial stack pointer of the called code.
    fn sp_avma(&self) -> u64 {
        self.frame_avma - self.tidied_by.map_or(0, |_| TIDYING_BYTES)
    }

    /// Address of the return frame.
    pub(crate) fn frame_avma(&self) -> u64 {
        self.frame_avma
    }

    /// Id of the thread.
    pub(crate) fn tid(&self) -> u32 {
        self.tid
    }

    /// Address of the thread's descriptor.
    pub(crate) fn thread_pointer(&self) -> u64 {
        self.original.thread_pointer()
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
                // A stop of the whole process is reported again when the thread returns to its own
                // work.
                Some(Event::Interrupted | Event::Executed) => {
                    self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
                }
                // SIGSTOP cannot be blocked: the process stops when this work is done.
                Some(Event::Signal(libc::SIGSTOP)) => {
                    let outcome = ptrace::go_to_system_call_with(self.tid, libc::SIGSTOP);
                    self.trace("PTRACE_SYSCALL", outcome)?;
                }
                // A fault of the called code.
                Some(Event::Signal(signal)) => {
                    return Err(Error::Malformed {
                        pid: self.pid,
                        what: "signal in code of the agent",
                        address_avma: ptrace::registers(self.tid).map_or(0, |registers| registers.pc()),
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

    /// Lets the thread run. It mostly finishes within microseconds; a sleep would make the target
    /// wait for longer.
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
        // The mask is set after the registers, because the return frame restores the thread's own
        // mask.
        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, registers))?;
        self.trace("PTRACE_SETSIGMASK", ptrace::set_signal_mask(self.tid, ALL_SIGNALS))?;
        made_to_die::moment(self.pid);
        self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        self.wait()?;
        made_to_die::moment(self.pid);
        Ok(())
    }

    /// Makes a system call. Returns its result, or the error number.
    pub(crate) fn system_call(
        &mut self,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> Result<std::result::Result<u64, i32>> {
        let mut registers = self.calling(number, arguments, self.sp_avma());
        if let Some(tidying) = self.tidied_by {
            registers.set_scratch(tidying.scratch_avma);
        }
        self.make_call(&registers)
    }

    /// Makes the system call that [`Self::calling`] has prepared. Returns its result, or the error
    /// number.
    pub(crate) fn make_call(&mut self, registers: &Registers) -> Result<std::result::Result<u64, i32>> {
        self.begin(registers)?;
        self.trace("PTRACE_SYSCALL", ptrace::go_to_system_call(self.tid))?;
        self.wait()?;
        let answer = self.trace("PTRACE_GETREGS", ptrace::registers(self.tid))?.returned();
        Ok(if (-4095..0).contains(&answer) { Err(-answer as i32) } else { Ok(answer.cast_unsigned()) })
    }

    /// Registers for a system call after which the thread continues by the frame at `sp_avma`.
    pub(crate) fn calling(&self, number: libc::c_long, arguments: [u64; 6], sp_avma: u64) -> Registers {
        let mut registers = self.going_to(self.gadgets.system_call_avma, sp_avma);
        registers.set_system_call(number, arguments);
        registers
    }

    /// Registers of the thread that continues at other code, which returns by the frame at
    /// `sp_avma`.
    fn going_to(&self, pc_avma: u64, sp_avma: u64) -> Registers {
        let sigreturn_avma = self.gadgets.sigreturn_avma;
        let link_avma = self.tidied_by.map_or(sigreturn_avma, |tidying| tidying.code_avma);
        self.original.going_to(pc_avma, sp_avma).returning_to(link_avma, sigreturn_avma)
    }

    /// Writes a frame below the return frame by which a thread gets other registers, with all
    /// signals blocked.
    pub(crate) fn place_small_frame(&self, sp_avma: u64, registers: &Registers) -> Result<()> {
        let frame = return_frame(sp_avma, self.gadgets.sigreturn_avma, registers, ALL_SIGNALS, &[]);
        let pid = self.pid;
        self.memory.write(sp_avma, &frame).map_err(|source| Error::Memory { pid, source })
    }

    /// Reads a word of the target's memory.
    pub(crate) fn read_word(&self, address_avma: u64) -> Result<u64> {
        let pid = self.pid;
        self.memory.read_u64(address_avma).map_err(|source| Error::Memory { pid, source })
    }

    /// Writes a word of the target's memory, below the thread's stack.
    pub(crate) fn write_word(&self, address_avma: u64, word: u64) -> Result<()> {
        let pid = self.pid;
        let write = self.memory.write(address_avma, &word.to_le_bytes());
        write.map_err(|source| Error::Memory { pid, source })
    }

    /// Makes the thread clone a process, which is traced from its first instruction on. If this
    /// process is killed, the clone continues by the frame at `sp_avma`. Returns the clone's id in
    /// this namespace, and in the process's own.
    pub(crate) fn clone_itself(
        &mut self,
        arguments: [u64; 6],
        sp_avma: u64,
    ) -> Result<std::result::Result<(u32, u64), i32>> {
        self.trace("PTRACE_SETOPTIONS", ptrace::follow_clones(self.tid, true))?;
        let answer = self.make_call(&self.calling(libc::SYS_clone, arguments, sp_avma));
        self.trace("PTRACE_SETOPTIONS", ptrace::follow_clones(self.tid, false))?;
        match (answer?, self.made_tid.take()) {
            (Ok(inner_tid), Some(tid)) => Ok(Ok((tid, inner_tid))),
            (Err(errno), _) => Ok(Err(errno)),
            (Ok(_), None) => Err(Error::Ended { pid: self.pid }),
        }
    }

    /// Makes a system call like [`Self::system_call`], and turns an error number into an error.
    pub(crate) fn call_system(
        &mut self,
        call: &'static str,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> Result<u64> {
        self.system_call(number, arguments)?.map_err(|errno| Error::RemoteCall { pid: self.pid, call, errno })
    }

    /// Calls a function through a part of the [`crate::arch::stub`], and returns its result.
    pub(crate) fn call_function(
        &mut self,
        stub_avma: u64,
        answer_avma: u64,
        function_avma: u64,
        arguments: [u64; 3],
    ) -> Result<u64> {
        let mut registers = self.going_to(stub_avma, self.sp_avma());
        registers.set_function_call(function_avma, answer_avma, arguments);
        self.run(&registers)?;
        let pid = self.pid;
        self.memory.read_u64(answer_avma).map_err(|source| Error::Memory { pid, source })
    }

    /// Runs code that ends with a `ret` to the system call `last`, and with the return frame behind
    /// that.
    pub(crate) fn run_to_last_call(
        &mut self,
        code_avma: u64,
        set: impl FnOnce(&mut Registers),
    ) -> Result<()> {
        let last_avma = self.sp_avma() - LAST_CALL_BYTES;
        if last_avma < self.sp_avma() {
            self.write_word(last_avma, self.gadgets.system_call_avma)?;
        }
        let mut registers = self.going_to(code_avma, last_avma);
        registers.set_last_call(self.gadgets.system_call_avma);
        set(&mut registers);
        self.run(&registers)
    }

    /// Runs the thread through all system calls, up to and including the one that ends the code.
    fn run(&mut self, registers: &Registers) -> Result<()> {
        self.begin(registers)?;
        loop {
            made_to_die::moment(self.pid);
            let now = self.trace("PTRACE_GETREGS", ptrace::registers(self.tid))?;
            let is_end = now.returns_by(self.frame_avma);
            if is_end {
                // A return from a signal handler makes the kernel forget the rest of an interrupted
                // sleep. The thread makes a call without effect instead, followed by that return in
                // case this process is killed.
                let mut registers = now;
                registers.replace_call(libc::SYS_munmap, [0, 0], self.gadgets.sigreturn_avma);
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

    /// Restores the thread's own registers, and leaves it stopped at its original location.
    pub(crate) fn bring_home(mut self) -> Result<()> {
        self.go_home()
    }

    fn go_home(&mut self) -> Result<()> {
        if self.is_home {
            return Ok(());
        }
        self.is_home = true;
        let home = self.original.going_on();
        // The interrupt is pending when the thread resumes. It thus runs no code of the program,
        // and stops where the kernel restarts the interrupted system call. The order matters if
        // this process is killed in between.
        self.trace("PTRACE_INTERRUPT", ptrace::interrupt(self.tid))?;
        self.trace("PTRACE_SETSIGMASK", ptrace::set_signal_mask(self.tid, self.signal_mask))?;
        self.trace("PTRACE_SETREGSET", ptrace::set_extended_state(self.tid, &self.extended_state))?;
        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, &home))?;
        self.trace("PTRACE_CONT", ptrace::go_on(self.tid, 0))?;
        let deadline = Instant::now() + CALL_LIMIT;
        let mut look_count = 0_u32;
        loop {
            match self.trace("waitpid", ptrace::poll(self.tid))? {
                Some(Event::Interrupted) => {
                    // The kernel may have kept a register's value at the last stop.
                    return if IS_ONE_HIDDEN_AT_CALLS {
                        self.trace("PTRACE_SETREGS", ptrace::set_registers(self.tid, &home))
                    } else {
                        Ok(())
                    };
                }
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

/// Pause before the next poll of a thread after `look_count` polls. Polls delay calls that take
/// milliseconds, and more of them gain nothing.
pub(crate) fn pause_before_look(look_count: u32) -> Duration {
    Duration::from_micros(20 + u64::from(look_count.saturating_sub(LOOKS_IF_URGENT)).min(180))
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        drop(self.go_home());
    }
}
