//! Registers of a thread.

use libc::c_long;

/// Layout of `struct user_pt_regs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct General {
    /// x0 to x30.
    pub(super) x: [u64; 31],
    pub(super) sp: u64,
    pub(super) pc: u64,
    pub(super) pstate: u64,
}

/// Registers of a thread, and the number of the system call that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(super) general: General,
    pub(super) thread_pointer: u64,
    /// Number of the system call; -1: the thread is in none.
    pub(super) call: i32,
    pub(super) is_32_bit: bool,
    /// Place of a thread that is stopped outside of a call.
    pub(super) around_call: AroundCall,
    /// Whether the kernel holds the rest of the sleep that the stop has interrupted.
    pub(super) has_sleep_left: bool,
}

/// Place of a thread next to a system call's instruction. The kernel makes a thread leave its call
/// before it stops for a tracer. A call that it restarts is then the next instruction, with all
/// arguments. Of another call the result has replaced the first argument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AroundCall {
    #[default]
    No,
    Before,
    Behind,
}

impl Default for Registers {
    fn default() -> Self {
        Self {
            general: General::default(),
            thread_pointer: 0,
            call: NO_CALL,
            is_32_bit: false,
            around_call: AroundCall::No,
            has_sleep_left: false,
        }
    }
}

/// Value that marks the absence of a system call, so that the kernel restarts none.
pub(super) const NO_CALL: i32 = -1;
/// Number of the register of a call's number.
const CALL_NUMBER: usize = 8;
/// Number of the link register.
const LINK: usize = 30;
/// Size in bytes of an instruction.
const INSTRUCTION_BYTES: u64 = 4;
/// State of a single step, and the kind of the last branch, which belong to an address.
const STATE_OF_ADDRESS: u64 = 1 << 21 | 3 << 10;

impl Registers {
    /// The general registers, for reading them in.
    pub(super) fn general_bytes(&mut self) -> &mut General {
        &mut self.general
    }

    /// True if the thread is a worker of io_uring, which never leaves the kernel and has no
    /// registers.
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.general.pc == 0 && self.general.sp == 0
    }

    /// Registers that may hold an address of the program, in the order of
    /// [`heapr_known::machine::ThreadRegisters`].
    pub(crate) fn words(&self) -> Vec<u64> {
        let behind = [self.general.sp, self.general.pc, self.thread_pointer];
        self.general.x.into_iter().chain(behind).collect()
    }

    /// True if the thread runs 64-bit code.
    pub(crate) fn is_64_bit(&self) -> bool {
        !self.is_32_bit
    }

    /// Address of the next instruction.
    pub(crate) fn pc(&self) -> u64 {
        self.general.pc
    }

    /// Stack pointer.
    pub(crate) fn sp(&self) -> u64 {
        self.general.sp
    }

    /// Changes the stack pointer.
    pub(crate) fn set_sp(&mut self, sp_avma: u64) {
        self.general.sp = sp_avma;
    }

    /// Address of the thread's descriptor.
    pub(crate) fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    /// Number of the system call that the thread is in.
    /// A thread that has just left a call, or is about to make one, counts as in it.
    pub(crate) fn system_call(&self) -> Option<c_long> {
        if self.call >= 0 {
            return Some(c_long::from(self.call));
        }
        let number = c_long::from(self.general.x[CALL_NUMBER] as u32);
        (self.around_call != AroundCall::No).then_some(number)
    }

    /// Arguments of the system call that the thread is in.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        let [a, b, c, d, e, f, ..] = self.general.x;
        [a, b, c, d, e, f]
    }

    /// Changes an argument of the system call that the thread is in.
    pub(crate) fn set_argument(&mut self, number: usize, value: u64) {
        if let Some(argument) = self.general.x.iter_mut().take(6).nth(number) {
            *argument = value;
        }
    }

    /// Result of a system call; an error number is negative.
    pub(crate) fn returned(&self) -> i64 {
        self.general.x[0].cast_signed()
    }

    /// Return address that is not on the stack.
    pub(crate) fn link(&self) -> Option<u64> {
        Some(super::code_address(self.general.x[LINK]))
    }

    /// Lets a thread make a call that ended with EINTR again. The result has replaced
    /// `first_argument`; if that is unknown, the call cannot be made again.
    pub(crate) fn restart_broken(&mut self, first_argument: Option<u64>) -> bool {
        let Some(first) = first_argument.filter(|_| self.around_call == AroundCall::Behind) else {
            return false;
        };
        self.general.x[0] = first;
        self.general.pc = self.general.pc.wrapping_sub(INSTRUCTION_BYTES);
        self.around_call = AroundCall::Before;
        true
    }

    /// Prepares a system call, for a thread at the instruction that makes it.
    pub(crate) fn set_system_call(&mut self, number: c_long, arguments: [u64; 6]) {
        self.general.x[CALL_NUMBER] = number.cast_unsigned();
        self.general.x[..6].copy_from_slice(&arguments);
    }

    /// Makes another call of the system call that the thread has just entered, and lets the thread
    /// continue at `pc_avma` afterwards.
    pub(crate) fn replace_call(&mut self, number: c_long, [first, second]: [u64; 2], pc_avma: u64) {
        self.general.pc = pc_avma;
        self.general.x[CALL_NUMBER] = number.cast_unsigned();
        self.general.x[..2].copy_from_slice(&[first, second]);
        self.call = i32::try_from(number).unwrap_or(NO_CALL);
    }

    /// True if the thread has entered the system call that returns by the frame at `frame_avma`.
    pub(crate) fn returns_by(&self, frame_avma: u64) -> bool {
        self.system_call() == Some(libc::SYS_rt_sigreturn) && self.general.sp == frame_avma
    }

    /// True if the stop is at the end of a system call: x7 says so
    /// (`arch/arm64/kernel/ptrace.c`, `report_syscall_exit`).
    pub(crate) fn have_left_call(&self) -> bool {
        self.general.x[7] == 1
    }

    /// True if the thread is at the end of the call by which a C library sets the thread pointer.
    /// It is an instruction here; the call that follows it in each C library sets the list of
    /// locks.
    pub(crate) fn have_set_thread_pointer(&self) -> bool {
        self.thread_pointer != 0 && self.system_call() == Some(libc::SYS_set_robust_list)
    }

    /// Registers as the kernel sets them when the thread resumes, so that an interrupted system
    /// call is restarted. The kernel has set them before it shows them.
    pub(crate) fn restarted(mut self) -> Self {
        self.call = NO_CALL;
        self
    }

    /// True if the call is a sleep for a time, of which the kernel holds the rest for the thread.
    /// Other calls are made again with all of their arguments.
    pub(crate) fn is_sleep_with_rest(number: c_long, arguments: &[u64; 6]) -> bool {
        const ABSOLUTE: u64 = libc::TIMER_ABSTIME as u64;
        const OPERATION: u64 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32 as u64;
        match number {
            libc::SYS_nanosleep => true,
            libc::SYS_clock_nanosleep => arguments[1] & ABSOLUTE == 0,
            libc::SYS_futex => arguments[1] & OPERATION == libc::FUTEX_WAIT as u64 && arguments[3] != 0,
            _ => false,
        }
    }

    /// Notes that the stop has interrupted the sleep whose call the thread is about to make again.
    pub(crate) fn note_sleep(&mut self) {
        self.has_sleep_left = self.around_call == AroundCall::Before;
    }

    /// Registers with which the thread goes on after other work. A thread that does none gets them
    /// from the kernel.
    pub(crate) fn going_on(mut self) -> Self {
        if self.has_sleep_left {
            self.general.x[CALL_NUMBER] = libc::SYS_restart_syscall.cast_unsigned();
        }
        self
    }

    /// Copy of the registers that continues at other code.
    pub(crate) fn going_to(mut self, pc_avma: u64, sp_avma: u64) -> Self {
        (self.general.pc, self.general.sp) = (pc_avma, sp_avma);
        self.general.pstate &= !STATE_OF_ADDRESS;
        self.call = NO_CALL;
        self.around_call = AroundCall::No;
        self.has_sleep_left = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread behind the instruction of a call that ended with EINTR.
    fn behind_call() -> Registers {
        let mut registers = Registers { around_call: AroundCall::Behind, ..Registers::default() };
        registers.general.pc = 0x1004;
        registers.general.x[0] = (-i64::from(libc::EINTR)).cast_unsigned();
        registers.general.x[CALL_NUMBER] = libc::SYS_epoll_pwait.cast_unsigned();
        registers
    }

    #[test]
    fn a_broken_call_is_made_again_if_its_first_argument_is_known() {
        let mut registers = behind_call();
        assert_eq!(registers.system_call(), Some(libc::SYS_epoll_pwait));
        assert!(!registers.restart_broken(None));
        assert_eq!(registers, behind_call());
        assert!(registers.restart_broken(Some(7)));
        assert_eq!((registers.pc(), registers.arguments()[0]), (0x1000, 7));
        assert!(!registers.restart_broken(Some(7)));
    }

    #[test]
    fn a_sleep_goes_on_with_its_rest() {
        let is_with_rest =
            |number, second, time| Registers::is_sleep_with_rest(number, &[0, second, 0, time, 0, 0]);
        assert!(is_with_rest(libc::SYS_nanosleep, 0, 0));
        assert!(is_with_rest(libc::SYS_clock_nanosleep, 0, 0));
        assert!(!is_with_rest(libc::SYS_clock_nanosleep, 1, 0));
        assert!(is_with_rest(libc::SYS_futex, 128, 0x1000));
        // Without a time, and until a time.
        assert!(!is_with_rest(libc::SYS_futex, 128, 0));
        assert!(!is_with_rest(libc::SYS_futex, 9 | 128 | 256, 0x1000));
        let mut registers = Registers { around_call: AroundCall::Before, ..Registers::default() };
        registers.general.x[CALL_NUMBER] = libc::SYS_nanosleep.cast_unsigned();
        assert_eq!(registers.going_on(), registers);
        registers.note_sleep();
        assert_eq!(registers.going_on().system_call(), Some(libc::SYS_restart_syscall));
        // A return from a signal handler makes the kernel forget the rest.
        assert_eq!(registers.restarted().system_call(), Some(libc::SYS_nanosleep));
    }

    #[test]
    fn other_code_begins_without_the_state_of_the_last_address() {
        let mut registers = behind_call();
        registers.general.pstate = 0x6000_0c00;
        let other = registers.going_to(0x5000, 0x8000);
        assert_eq!((other.system_call(), other.general.pstate), (None, 0x6000_0000));
        assert_eq!((other.pc(), other.sp()), (0x5000, 0x8000));
    }
}
