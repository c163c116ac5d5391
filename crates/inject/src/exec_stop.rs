//! Preparation of a starting program, so that it is recorded from its first instruction.
//!
//! ```text
//! execve waits (ExecWatch) --seize--> traced --allowed--> stopped before its first instruction
//!                                                           | variables are added to its start
//!                                                           | block, which lies on its stack
//!                                                           v
//!                                                         released: its loader loads the agent
//! ```
//!
//! If this process dies, the program continues. Data written below its stack pointer has no meaning
//! until the pointer itself is changed, which is one call.
//!
//! Before Linux 6.8, a waiting exec holds a lock that the seize needs too. The seize then succeeds
//! only after the exec is allowed, and mostly too late.

use std::io;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::ptrace::{self, Event};
use crate::seccomp;
use crate::start_block::{AT_BASE, AT_EXECFN, AT_PHDR, AT_PHNUM, AT_SECURE, StartBlock};
use heapr_proc::mappings;

/// A process that was seized while it waits in exec; dropping this releases it.
#[derive(Debug)]
pub struct HeldExec {
    pid: u32,
    tid: u32,
    is_stopped: bool,
    is_handed_over: bool,
    /// Not sendable: the kernel accepts requests only from the thread that has seized.
    only_here: PhantomData<*const ()>,
}

/// Result of preparing a program before its first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// The program's loader will load the library.
    Done,
    /// The program's environment has the settings already: its parent was prepared.
    Inherited,
    /// The program has no loader, so that variables have no effect.
    Static,
    /// The program runs with more rights than its starter: its loader ignores the variables.
    Privileged,
    /// A seccomp filter of the program may end it for the agent's system calls.
    Filtered,
    /// The program's stack has no room, or has an unknown layout.
    NoRoom,
}

const POLL: Duration = Duration::from_micros(20);
/// Longest time for a process to stop on request.
const STOP_LIMIT: Duration = Duration::from_millis(500);

impl HeldExec {
    /// Seizes a thread that waits in exec.
    ///
    /// # Errors
    /// Returns an error if the thread may not be traced, or has a tracer.
    pub fn seize(pid: u32, tid: u32) -> io::Result<Self> {
        ptrace::seize_until_exec(tid)?;
        Ok(Self { pid, tid, is_stopped: false, is_handed_over: false, only_here: PhantomData })
    }

    /// Waits until the new image is stopped before its first instruction. `Ok(false)`: the exec has
    /// failed, or the process has ended.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses to report the state.
    pub fn wait_for_exec(&mut self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            // The thread that calls exec becomes the process's first thread.
            match ptrace::poll(self.pid)? {
                Some(Event::Executed) => {
                    self.tid = self.pid;
                    self.is_stopped = true;
                    return Ok(true);
                }
                // The first thread is not traced yet: another thread of the process has called
                // exec.
                Some(Event::Ended) if self.tid != self.pid => match ptrace::poll(self.tid)? {
                    Some(Event::Ended) if heapr_proc::Stat::of_thread(self.pid, self.pid).is_none() => {
                        return Ok(false);
                    }
                    Some(event) => self.pass_on(self.tid, event)?,
                    None => {}
                },
                Some(Event::Ended) => return Ok(false),
                Some(event) => self.pass_on(self.pid, event)?,
                None => {}
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
    }

    fn pass_on(&self, tid: u32, event: Event) -> io::Result<()> {
        let signal = if let Event::Signal(signal) = event { signal } else { 0 };
        match ptrace::go_on(tid, signal) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            outcome => outcome,
        }
    }

    /// Name by which the program was started; for a script the script's name.
    #[must_use]
    pub fn started_as(&self) -> Option<Vec<u8>> {
        const PATH_BYTES_MAX: usize = 4096;
        let (memory, block) = self.block()?;
        memory.read_string(block.fact(AT_EXECFN)?, PATH_BYTES_MAX).ok()
    }

    fn block(&self) -> Option<(ProcessMemory, StartBlock)> {
        let memory = ProcessMemory::open(self.pid).ok()?;
        let registers = ptrace::registers(self.pid).ok()?;
        let block = StartBlock::read(&memory, registers.sp()).ok()?;
        registers.is_64_bit().then_some((memory, block))
    }

    /// Makes the stopped program's loader load a library before all others, and sets another
    /// variable.
    ///
    /// # Errors
    /// Returns an error if the program is gone.
    pub fn preload(&self, library: &[u8], variable: (&str, &[u8])) -> io::Result<Preparation> {
        let Some((memory, block)) = self.block() else { return Ok(Preparation::NoRoom) };
        if block.fact(AT_BASE).unwrap_or(0) == 0 {
            return Ok(Preparation::Static);
        }
        if block.fact(AT_SECURE).unwrap_or(0) != 0 {
            return Ok(Preparation::Privileged);
        }
        if seccomp::check(self.pid, std::iter::once(self.pid), &[seccomp::OF_AGENT]).is_err() {
            return Ok(Preparation::Filtered);
        }
        let Ok(present) = block.variable(&memory, "LD_PRELOAD") else { return Ok(Preparation::NoRoom) };
        let present = present.unwrap_or_default();
        let is_loaded = present.split(|&byte| byte == b':' || byte == b' ').any(|part| part == library);
        // An agent of another build may be present, with its own session.
        let is_agent = |part: &[u8]| kind_of(part) == kind_of(library);
        let has_agent = is_loaded || present.split(|&byte| byte == b':' || byte == b' ').any(is_agent);
        if has_agent && block.variable(&memory, variable.0).is_ok_and(|value| value.is_some()) {
            return Ok(Preparation::Inherited);
        }
        let preload = match present.as_slice() {
            present if is_loaded => present.to_vec(),
            [] => library.to_vec(),
            present => [library, b":", present].concat(),
        };
        let (sp_avma, bytes) = block.with_variables(&[("LD_PRELOAD", &preload), variable]);
        let mappings = memory.mappings()?;
        let mut registers = ptrace::registers(self.pid)?;
        let has_room = mappings::find(&mappings, registers.sp())
            .is_some_and(|stack| stack.contains(sp_avma) && stack.is_writable);
        if !has_room || memory.write(sp_avma, &bytes).is_err() {
            return Ok(Preparation::NoRoom);
        }
        registers.set_sp(sp_avma);
        ptrace::set_registers(self.pid, &registers)?;
        Ok(Preparation::Done)
    }

    /// True if the stopped program has a loader.
    #[must_use]
    pub fn has_loader(&self) -> bool {
        self.block().is_some_and(|(_, block)| block.fact(AT_BASE).unwrap_or(0) != 0)
    }

    /// True if the program's loader loads no libraries, so that the C library never appears.
    /// Position-independent Go programs are an example.
    fn needs_no_library(&self) -> bool {
        const ENTRY_BYTES: u64 = 56;
        const PT_DYNAMIC: u32 = 2;
        const PT_PHDR: u32 = 6;
        const DT_NEEDED: u64 = 1;
        const ENTRIES_MAX: u64 = 256;
        let Some((memory, block)) = self.block() else { return false };
        let (Some(table_avma), Some(count)) = (block.fact(AT_PHDR), block.fact(AT_PHNUM)) else {
            return false;
        };
        let entry = |kind: u32| {
            (0..count.min(ENTRIES_MAX)).map(|number| table_avma.wrapping_add(number * ENTRY_BYTES)).find_map(
                |avma| {
                    let found = memory.read_u64(avma).ok()? as u32;
                    let place = memory.read_u64(avma.wrapping_add(16)).ok()?;
                    (found == kind).then_some(place)
                },
            )
        };
        let (Some(table_svma), Some(dynamic_svma)) = (entry(PT_PHDR), entry(PT_DYNAMIC)) else {
            return false;
        };
        let dynamic_avma = table_avma.wrapping_sub(table_svma).wrapping_add(dynamic_svma);
        for number in 0..ENTRIES_MAX {
            match memory.read_u64(dynamic_avma.wrapping_add(number * 16)) {
                Ok(0) => return true,
                Ok(DT_NEEDED) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        false
    }

    /// Runs the program's loader, from one system call to the next, until all libraries are loaded
    /// and none of their code has run. The C library is then loaded, and the loader marks its list
    /// as complete.
    ///
    /// A program without a loader runs until its first thread is set up: C libraries allocate
    /// nothing before.
    ///
    /// # Errors
    /// Returns an error if the program is gone.
    pub fn run_loader(&mut self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        let memory = ProcessMemory::open(self.pid)?;
        let has_loader = self.has_loader() && !self.needs_no_library();
        let mut signal = 0;
        loop {
            self.is_stopped = false;
            ptrace::go_to_system_call_with(self.pid, signal)?;
            signal = 0;
            let event = loop {
                match ptrace::poll(self.pid)? {
                    Some(event) => break event,
                    None if Instant::now() > deadline => return Ok(false),
                    None => std::thread::yield_now(),
                }
            };
            match event {
                Event::Ended => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Event::Signal(other) => signal = other,
                Event::Interrupted | Event::Executed | Event::Cloned => {}
                Event::SystemCall => {
                    self.is_stopped = true;
                    let registers = ptrace::registers(self.pid)?;
                    let is_ready = || {
                        if has_loader {
                            is_loaded(self.pid, &memory)
                        } else {
                            registers.have_set_thread_pointer()
                        }
                    };
                    if registers.have_left_call() && is_ready() {
                        return self.stop_between_calls(deadline);
                    }
                }
            }
            if Instant::now() > deadline {
                self.is_stopped = event == Event::SystemCall;
                return Ok(false);
            }
        }
    }

    /// Moves a thread from the end of a system call to before its next instruction, where it can be
    /// borrowed.
    fn stop_between_calls(&mut self, deadline: Instant) -> io::Result<bool> {
        ptrace::interrupt(self.pid)?;
        self.is_stopped = false;
        ptrace::go_on(self.pid, 0)?;
        loop {
            match ptrace::poll(self.pid)? {
                Some(Event::Interrupted) => {
                    self.is_stopped = true;
                    return Ok(true);
                }
                Some(Event::Ended) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Some(event) => self.pass_on(self.pid, event)?,
                None if Instant::now() > deadline => return Ok(false),
                None => std::thread::yield_now(),
            }
        }
    }

    /// Hands over the stopped thread; the caller must release it.
    pub(crate) fn into_stopped(mut self) -> u32 {
        self.is_handed_over = true;
        self.tid
    }

    /// Releases the process from tracing.
    pub fn let_go(self) {
        drop(self);
    }

    fn release(&mut self) {
        if self.is_handed_over {
            return;
        }
        let deadline = Instant::now() + STOP_LIMIT;
        // A running thread must stop before its release; the end of this process would release it
        // too.
        if !self.is_stopped && ptrace::interrupt(self.tid).is_err() {
            return;
        }
        while !self.is_stopped && Instant::now() < deadline {
            match ptrace::poll(self.tid) {
                Ok(Some(Event::Ended)) | Err(_) => return,
                Ok(Some(Event::Signal(signal))) => drop(ptrace::go_on(self.tid, signal)),
                Ok(Some(_)) => self.is_stopped = true,
                Ok(None) => std::thread::sleep(POLL),
            }
        }
        drop(ptrace::detach(self.tid));
    }
}

/// File name of a library up to its last dash, which is equal for all builds.
fn kind_of(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.iter().rposition(|&byte| byte == b'-').map_or(name, |end| &name[..end])
}

/// True if the loader's list is complete and contains the C library.
fn is_loaded(pid: u32, memory: &ProcessMemory) -> bool {
    Modules::read(pid, memory).is_ok_and(|modules| {
        modules.is_consistent(memory) && modules.find(memory, "gnu_get_libc_version").is_some()
    })
}

impl Drop for HeldExec {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_one_library_are_of_a_kind() {
        assert_eq!(kind_of(b"/run/heapr/heapr-agent-0123.so"), b"heapr-agent");
        assert_eq!(kind_of(b"heapr-agent-45.so"), b"heapr-agent");
        assert_eq!(kind_of(b"/usr/lib/libjemalloc.so.2"), b"libjemalloc.so.2");
        assert_eq!(kind_of(b""), b"");
    }
}
