//! Registers of a thread.

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

    /// Number of the system call that the thread is in.
    pub(crate) fn system_call(&self) -> Option<u64> {
        (self.orig_rax.cast_signed() >= 0).then_some(self.orig_rax)
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
