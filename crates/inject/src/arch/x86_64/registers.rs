//! Registers of a thread.

use heapr_known::machine::HERE;
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

/// Number of registers of `struct user_regs_struct`.
const REGISTERS: usize = size_of::<Registers>() / 8;

impl Registers {
    /// True if the thread is a worker of io_uring. It appears in the task list of the process, and
    /// never leaves the kernel. The kernel sets its instruction and stack pointers to zero for
    /// debuggers (Linux, `copy_thread` of x86).
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.rip == 0 && self.rsp == 0
    }

    /// Registers that may hold an address of the program, in the order of
    /// [`heapr_known::machine::ThreadRegisters`].
    pub(crate) fn words(&self) -> Vec<u64> {
        // SAFETY: the structure is a list of 8-byte words without padding.
        let all = unsafe { &*std::ptr::from_ref(self).cast::<[u64; REGISTERS]>() };
        HERE.registers.kernel_indices.iter().map(|&index| all[index]).collect()
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
    fn set_returned(&mut self, value: i64) {
        self.rax = value.cast_unsigned();
    }

    /// Lets the kernel restart a call that ended with EINTR; if a signal handler runs before that,
    /// the call ends with EINTR. `_first_argument` is not needed: the kernel kept the arguments.
    /// False: it cannot be restarted.
    pub(crate) fn restart_broken(&mut self, _first_argument: Option<u64>) -> bool {
        self.set_returned(ERESTARTNOHAND);
        true
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

    /// True if the call is a sleep whose rest must be noted: the kernel shows it in the registers.
    pub(crate) fn is_sleep_with_rest(_number: c_long, _arguments: &[u64; 6]) -> bool {
        false
    }

    /// Notes an interrupted sleep: the registers show it.
    pub(crate) fn note_sleep(&mut self) {}

    /// Registers with which the thread goes on after other work.
    pub(crate) fn going_on(self) -> Self {
        self
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

    /// Return address that is not on the stack: none on this processor.
    pub(crate) fn link(&self) -> Option<u64> {
        None
    }

    /// Lets the code that the thread is going to return to `_link_avma`: the word at its stack
    /// pointer says so on this processor.
    pub(crate) fn returning_to(self, _link_avma: u64, _sigreturn_avma: u64) -> Self {
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
    fn the_lists_of_registers_are_those_of_their_names() {
        let registers = Registers {
            rax: 1,
            rsp: 2,
            r15: 3,
            rip: 4,
            fs_base: 5,
            gs_base: 6,
            rdx: 7,
            ..Default::default()
        };
        let named: Vec<(&str, u64)> = HERE
            .registers
            .names
            .iter()
            .copied()
            .zip(registers.words())
            .filter(|&(_, word)| word != 0)
            .collect();
        let expected =
            [("rax", 1), ("rdx", 7), ("rsp", 2), ("r15", 3), ("rip", 4), ("fs base", 5), ("gs base", 6)];
        assert_eq!(named, expected);
        let words = registers.words();
        let dwarf = |number: usize| words[HERE.columns.thread_indices[number]];
        assert_eq!((dwarf(0), dwarf(1), dwarf(7), dwarf(15), dwarf(16)), (1, 7, 2, 3, 4));
        assert_eq!(registers.sp(), registers.words()[HERE.registers.stack_pointer]);
        assert_eq!(registers.thread_pointer(), registers.words()[HERE.registers.thread_pointer]);
    }

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
