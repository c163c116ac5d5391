//! Frames of a stopped thread, from the innermost to its callers.
//!
//! ```text
//! innermost frame -> rule of its code ------------------------> caller
//!                 -> signal trampoline without tables --------> interrupted function
//! ```

use heapr_known::machine::Machine;

use crate::{FrameRegisters, UnwindRule};

/// Frame of a stopped thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedFrame {
    registers: FrameRegisters,
    /// Return address in a register. Only a function that has called nothing has it there: the
    /// innermost one, and one that a signal has interrupted.
    link: Option<u64>,
    /// Whether the frame's address is the instruction that it was stopped at, instead of the one
    /// behind a call.
    is_exact: bool,
}

impl StoppedFrame {
    /// Innermost frame of a thread. `words`: its registers, in the order of
    /// [`ThreadRegisters`](heapr_known::machine::ThreadRegisters).
    #[must_use]
    pub fn innermost(machine: &Machine, words: &[u64]) -> Self {
        let word = |&index: &usize| words.get(index).copied();
        let mut registers: FrameRegisters = machine.columns.thread_indices.iter().map(word).collect();
        let column = machine.columns.return_address;
        let pc_avma = word(&machine.registers.instruction_pointer);
        let is_register =
            machine.columns.thread_indices.get(column) != Some(&machine.registers.instruction_pointer);
        let link = registers.get(column).copied().flatten().filter(|_| is_register);
        if let Some(register) = registers.get_mut(column) {
            *register = pc_avma;
        }
        Self { registers, link: link.map(|word| plain(machine, word)), is_exact: true }
    }

    /// Address at which the frame's execution resumes, without a signature; `None` behind the
    /// thread's first function.
    #[must_use]
    pub fn pc_avma(&self, machine: &Machine) -> Option<u64> {
        let word = self.registers.get(machine.columns.return_address).copied().flatten()?;
        Some(plain(machine, word))
    }

    /// Lowest address of the frame; `None` if unknown.
    #[must_use]
    pub fn sp_avma(&self, machine: &Machine) -> Option<u64> {
        self.registers.get(machine.columns.stack_pointer).copied().flatten()
    }

    /// Address by which the frame's rule is found. A return address may lie behind the caller's
    /// last instruction.
    #[must_use]
    pub fn lookup_avma(&self, machine: &Machine) -> Option<u64> {
        Some(self.pc_avma(machine)?.wrapping_sub(u64::from(!self.is_exact)))
    }

    /// Whether the frame was stopped at its address, instead of having called from before it.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The function that a signal has interrupted, if this frame is a trampoline without tables.
    /// `word_at` reads 8 bytes of the thread's memory.
    #[must_use]
    pub fn interrupted(&self, machine: &Machine, word_at: &dyn Fn(u64) -> Option<u64>) -> Option<Self> {
        let signal_return = machine.columns.signal_return?;
        let pc_avma = self.pc_avma(machine)?;
        if word_at(pc_avma)? != u64::from_le_bytes(signal_return.code) {
            return None;
        }
        let sp_avma = self.sp_avma(machine)?;
        let first_avma = sp_avma.wrapping_add(signal_return.registers_at);
        let register = |number: usize| word_at(first_avma.wrapping_add(8 * number as u64));
        let mut registers: FrameRegisters = (0..self.registers.len()).map(register).collect();
        let column = machine.columns.return_address;
        let link = registers.get(column).copied().flatten().map(|word| plain(machine, word));
        *registers.get_mut(column)? = Some(word_at(sp_avma.wrapping_add(signal_return.address_at))?);
        Some(Self { registers, link, is_exact: true })
    }

    /// The caller by the rule of the frame's code; `None` if unknown. Behind the thread's first
    /// function it has no address. `word_at` reads 8 bytes of the thread's memory.
    #[must_use]
    pub fn caller(
        &self,
        machine: &Machine,
        rule: &UnwindRule,
        word_at: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<Self> {
        let registers = rule.caller(&machine.columns, &self.registers, self.link, word_at)?;
        let caller = Self { registers, link: None, is_exact: rule.is_of_signal };
        if !rule.is_of_signal && caller.pc_avma(machine).is_some() {
            // A signal handler may have a separate stack. A function that has pushed nothing has
            // its caller's stack pointer.
            let (own, callers) = (self.sp_avma(machine)?, caller.sp_avma(machine)?);
            if callers < own || callers == own && self.link.is_none() {
                return None;
            }
        }
        Some(caller)
    }
}

/// Address in a word that may be a signed return address.
fn plain(machine: &Machine, word: u64) -> u64 {
    if machine.columns.may_sign_return_addresses { word & (machine.address_limit - 1) } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine whose signal trampolines have no tables, and whose return addresses may lie in a
    /// register. (ELF's number 183.)
    fn machine() -> &'static Machine {
        heapr_known::machine::of_elf(183).unwrap()
    }

    #[test]
    fn the_innermost_frame_has_the_instruction_pointer_and_what_it_returns_to() {
        let machine = machine();
        let mut words: Vec<u64> = (0..machine.registers.names.len() as u64).collect();
        // A signed return address.
        words[30] = 0x0035_aaaa_1234_5678;
        let frame = StoppedFrame::innermost(machine, &words);
        assert_eq!((frame.pc_avma(machine), frame.sp_avma(machine)), (Some(32), Some(31)));
        assert_eq!((frame.lookup_avma(machine), frame.link), (Some(32), Some(0xaaaa_1234_5678)));
        assert_eq!(StoppedFrame::innermost(machine, &[]).pc_avma(machine), None);
    }

    #[test]
    fn behind_a_trampoline_without_tables_is_the_interrupted_function() {
        let machine = machine();
        let trampoline = machine.columns.signal_return.unwrap();
        let words: Vec<u64> = (0..machine.registers.names.len() as u64).map(|word| word << 12).collect();
        let frame = StoppedFrame::innermost(machine, &words);
        let (pc_avma, sp_avma) = (32 << 12, 31 << 12);
        // Each word of the kernel's frame holds its offset in it.
        let word_at = |avma: u64| match avma {
            _ if avma == pc_avma => Some(u64::from_le_bytes(trampoline.code)),
            _ => avma.checked_sub(sp_avma),
        };
        let interrupted = frame.interrupted(machine, &word_at).unwrap();
        assert_eq!(interrupted.pc_avma(machine), Some(128 + 176 + 8 + 32 * 8));
        assert_eq!(interrupted.sp_avma(machine), Some(128 + 176 + 8 + 31 * 8));
        assert_eq!(interrupted.link, Some(128 + 176 + 8 + 30 * 8));
        assert_eq!(interrupted.lookup_avma(machine), interrupted.pc_avma(machine));
        assert_eq!(frame.interrupted(machine, &|avma| Some(avma)), None, "other code");
        let unreadable = |avma: u64| word_at(avma).filter(|_| avma < sp_avma);
        assert_eq!(frame.interrupted(machine, &unreadable), None);
    }
}
