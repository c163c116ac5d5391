//! Registers of a thread.

use libc::c_long;

/// Layout of `struct user_regs_struct`.
#[allow(missing_docs, reason = "named as the processor names them")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rdx: u64,
    pub(crate) rsi: u64,
    pub(crate) rdi: u64,
    pub(crate) orig_rax: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) eflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
    pub(crate) fs_base: u64,
    pub(crate) gs_base: u64,
    pub(crate) ds: u64,
    pub(crate) es: u64,
    pub(crate) fs: u64,
    pub(crate) gs: u64,
}

/// The kernel's internal error numbers of a system call that a signal or a tracer has interrupted.
const ERESTARTSYS: i64 = -512;
const ERESTARTNOINTR: i64 = -513;
const ERESTARTNOHAND: i64 = -514;
const ERESTART_RESTARTBLOCK: i64 = -516;

const RESTART_SYSCALL: u64 = 219;
/// Value that marks the absence of a system call, so that the kernel restarts none.
pub(crate) const NO_CALL: u64 = u64::MAX;
/// Size in bytes of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;
const CS_64: u64 = 0x33;
const TRAP_FLAG: u64 = 1 << 8;
const DIRECTION_FLAG: u64 = 1 << 10;

/// Size in bytes of the red zone: leaf functions' data below the stack pointer. Memory below it is
/// unused.
pub(crate) const RED_ZONE_BYTES: u64 = 128;

/// Number of words from a signal frame's return address to the interrupted stack pointer: flags,
/// link, stack (3), and 15 registers.
pub(crate) const SIGNAL_FRAME_SP_WORDS: usize = 21;

/// Known registers of a frame, in DWARF's order: the general ones, then the return address.
pub(crate) type FrameRegisters = [Option<u64>; 17];

/// Index of the stack pointer; the next constant is that of the return address.
pub(crate) const DWARF_STACK_POINTER: usize = 7;
pub(crate) const DWARF_RETURN_ADDRESS: usize = 16;

/// True if functions preserve a register (DWARF's number) for their callers.
pub(crate) fn is_kept_by_callees(number: usize) -> bool {
    // rbx, rbp, r12 to r15
    [3, 6, 12, 13, 14, 15].contains(&number)
}

impl Registers {
    /// General registers by DWARF's numbers.
    pub(crate) fn by_dwarf(&self) -> FrameRegisters {
        let low = [self.rax, self.rdx, self.rcx, self.rbx, self.rsi, self.rdi, self.rbp, self.rsp];
        let high = [self.r8, self.r9, self.r10, self.r11, self.r12, self.r13, self.r14, self.r15];
        let mut registers = FrameRegisters::default();
        for (place, value) in registers.iter_mut().zip(low.into_iter().chain(high).chain([self.rip])) {
            *place = Some(value);
        }
        registers
    }

    /// True if the thread is a worker of io_uring. It appears in the task list of the process, and
    /// never leaves the kernel. The kernel sets its instruction and stack pointers to zero for
    /// debuggers (Linux, `copy_thread` of x86).
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.rip == 0 && self.rsp == 0
    }

    /// Registers that may hold an address of the program.
    pub(crate) fn words(&self) -> Vec<u64> {
        vec![
            self.rax,
            self.rbx,
            self.rcx,
            self.rdx,
            self.rsi,
            self.rdi,
            self.rbp,
            self.rsp,
            self.r8,
            self.r9,
            self.r10,
            self.r11,
            self.r12,
            self.r13,
            self.r14,
            self.r15,
            self.rip,
            self.fs_base,
            self.gs_base,
        ]
    }

    /// True if the thread runs 64-bit code.
    pub(crate) fn is_64_bit(&self) -> bool {
        self.cs == CS_64
    }

    /// Address of the next instruction.
    pub(crate) fn pc(&self) -> u64 {
        self.rip
    }

    /// Stack pointer.
    pub(crate) fn sp(&self) -> u64 {
        self.rsp
    }

    /// Changes the stack pointer.
    pub(crate) fn set_sp(&mut self, sp_avma: u64) {
        self.rsp = sp_avma;
    }

    /// Address of the thread's descriptor.
    pub(crate) fn thread_pointer(&self) -> u64 {
        self.fs_base
    }

    /// Number of the system call that the thread is in.
    pub(crate) fn system_call(&self) -> Option<c_long> {
        let number = self.orig_rax.cast_signed();
        (number >= 0).then_some(number)
    }

    /// Arguments of the system call that the thread is in.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// Changes an argument of the system call that the thread is in.
    pub(crate) fn set_argument(&mut self, number: usize, value: u64) {
        let places = [&mut self.rdi, &mut self.rsi, &mut self.rdx, &mut self.r10, &mut self.r8, &mut self.r9];
        if let Some(argument) = places.into_iter().nth(number) {
            *argument = value;
        }
    }

    /// Result of a system call; an error number is negative.
    pub(crate) fn returned(&self) -> i64 {
        self.rax.cast_signed()
    }

    /// Changes the result of a system call.
    pub(crate) fn set_returned(&mut self, value: i64) {
        self.rax = value.cast_unsigned();
    }

    /// Prepares a system call, for a thread at the instruction that makes it.
    pub(crate) fn set_system_call(&mut self, number: c_long, arguments: [u64; 6]) {
        self.rax = number.cast_unsigned();
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9] = arguments;
    }

    /// Makes another call of the system call that the thread has just entered, and lets the thread
    /// continue at `pc_avma` afterwards.
    pub(crate) fn replace_call(&mut self, number: c_long, [first, second]: [u64; 2], pc_avma: u64) {
        self.rip = pc_avma;
        (self.orig_rax, self.rdi, self.rsi) = (number.cast_unsigned(), first, second);
    }

    /// True if the thread has entered the system call that returns by the frame at `frame_avma`.
    /// The last `ret` has popped the frame's first word.
    pub(crate) fn returns_by(&self, frame_avma: u64) -> bool {
        self.system_call() == Some(libc::SYS_rt_sigreturn) && self.rsp == frame_avma + 8
    }

    /// True if the stop is at the end of a system call. At its beginning the kernel shows ENOSYS,
    /// which no call returns.
    pub(crate) fn have_left_call(&self) -> bool {
        self.returned() != -i64::from(libc::ENOSYS)
    }

    /// True if the thread is at the end of the call by which a C library sets the thread pointer.
    pub(crate) fn have_set_thread_pointer(&self) -> bool {
        const ARCH_SET_FS: u64 = 0x1002;
        (self.system_call(), self.rdi, self.rax) == (Some(libc::SYS_arch_prctl), ARCH_SET_FS, 0)
    }

    /// Registers as the kernel sets them when the thread resumes, so that an interrupted system
    /// call is restarted. For a location where the kernel does not do so itself.
    pub(crate) fn restarted(mut self) -> Self {
        if self.system_call().is_some() {
            match self.rax.cast_signed() {
                ERESTARTSYS | ERESTARTNOINTR | ERESTARTNOHAND => {
                    self.rax = self.orig_rax;
                    self.rip = self.rip.wrapping_sub(SYSCALL_BYTES);
                }
                ERESTART_RESTARTBLOCK => {
                    self.rax = RESTART_SYSCALL;
                    self.rip = self.rip.wrapping_sub(SYSCALL_BYTES);
                }
                _ => {}
            }
        }
        self.orig_rax = NO_CALL;
        self
    }

    /// Copy of the registers that continues at other code.
    pub(crate) fn going_to(mut self, rip: u64, rsp: u64) -> Self {
        self.rip = rip;
        self.rsp = rsp;
        self.orig_rax = NO_CALL;
        self.eflags &= !(TRAP_FLAG | DIRECTION_FLAG);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_made_again() {
        let blocked =
            Registers { orig_rax: 0, rax: (-512_i64).cast_unsigned(), rip: 0x1002, ..Default::default() };
        let again = blocked.restarted();
        assert_eq!((again.rax, again.rip, again.orig_rax), (0, 0x1000, NO_CALL));
        let sleeping =
            Registers { orig_rax: 230, rax: (-516_i64).cast_unsigned(), rip: 0x1002, ..Default::default() };
        assert_eq!((sleeping.restarted().rax, sleeping.restarted().rip), (219, 0x1000));
    }

    #[test]
    fn a_thread_that_runs_is_left_as_it_is() {
        let running = Registers {
            orig_rax: NO_CALL,
            rax: (-512_i64).cast_unsigned(),
            rip: 0x1002,
            ..Default::default()
        };
        assert_eq!(running.restarted(), running);
        let done = Registers { orig_rax: 1, rax: 5, rip: 0x1002, ..Default::default() };
        assert_eq!((done.restarted().rax, done.restarted().rip), (5, 0x1002));
    }
}
