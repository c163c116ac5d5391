//! The full unwind, with all registers: for frames that need more than (pc, sp, bp), and to verify
//! the fast one.

use super::call_frame::{UnwindTables, find_row};
use super::expression::evaluate;
use super::recognised_code::{is_entered_by_return, is_left_for_c, is_signal_return};
use super::unwind_row::{Cfa, Column, Row, STEP_COLUMNS};
use crate::arch::columns::{
    COLUMNS, FRAME_POINTER, RETURN_ADDRESS, RETURN_ADDRESS_IS_REGISTER, STACK_POINTER,
};
use crate::arch::saved_registers::{self, SavedRegisters, save_registers};
use crate::arch::signal_return::{TABLES_PASS_OVER, ucontext};
use crate::arch::{FRAME_RECORD_BYTES, RETURN_ADDRESS_IN_RECORD, Rule, Step, unsigned};

/// The registers of a frame in DWARF's order, the return address (or interrupted address plus one)
/// last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    values: [u64; COLUMNS],
    known: u32,
    /// Return address of an interrupted function that has not stored it, on processors whose calls
    /// leave it in a register.
    link: Option<u64>,
    /// Whether the frame was interrupted by a signal, at `pc - 1`.
    pub(crate) is_exact: bool,
}

/// Result of a full step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FullStep {
    /// The registers are now the caller's.
    Caller,
    /// The frame has no caller.
    Root,
    /// The caller cannot be found.
    Stop,
}

impl Registers {
    /// Returns the registers at this point of the calling function.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        let mut saved = SavedRegisters::default();
        // SAFETY: the structure on this stack is written.
        unsafe { save_registers(&raw mut saved) };
        let mut registers = Self { values: [0; COLUMNS], known: 0, link: None, is_exact: false };
        for (column, value) in saved_registers::COLUMNS.into_iter().zip(saved.words) {
            registers.set(column, value);
        }
        registers
    }

    /// Makes registers that are all known, with these values.
    #[cfg(test)]
    pub(super) fn of(values: [u64; COLUMNS], is_exact: bool) -> Self {
        Self { values, known: u32::MAX >> (32 - COLUMNS), link: None, is_exact }
    }

    pub(super) fn get(&self, column: usize) -> Option<u64> {
        if self.known.checked_shr(column as u32)? & 1 == 0 {
            return None;
        }
        self.values.get(column).copied()
    }

    fn set(&mut self, column: usize, value: u64) {
        if let Some(place) = self.values.get_mut(column) {
            *place = value;
            self.known |= 1_u32.wrapping_shl(column as u32);
        }
    }

    fn value(&self, column: usize) -> usize {
        self.values.get(column).copied().unwrap_or(0) as usize
    }

    /// Return address, or interrupted address plus one.
    pub(crate) fn pc(&self) -> usize {
        self.value(RETURN_ADDRESS)
    }

    pub(crate) fn sp(&self) -> usize {
        self.value(STACK_POINTER)
    }

    pub(crate) fn bp(&self) -> usize {
        self.value(FRAME_POINTER)
    }

    /// True if a table, or the code, locates the caller by something other than the stack pointer:
    /// then the caller may run on another stack.
    pub(crate) fn may_change_stacks(&self, tables: Option<&UnwindTables>) -> bool {
        if tables.is_some_and(|tables| is_left_for_c(tables, self.pc().wrapping_sub(1))) {
            return true;
        }
        let found = tables.and_then(|tables| find_row::<STEP_COLUMNS>(tables, self.pc().wrapping_sub(1)));
        found.is_some_and(|found| match found.row.cfa {
            Cfa::Register(register, _) => usize::from(register) != STACK_POINTER,
            Cfa::Expression(_) => true,
        })
    }

    /// Unwinds one frame; `hdr` are the unwind tables of the module that holds it, if there are
    /// any.
    pub(crate) fn step(
        &mut self,
        hdr: Option<&UnwindTables>,
        read: &mut dyn FnMut(usize) -> Option<usize>,
    ) -> FullStep {
        let lookup_avma = self.pc().wrapping_sub(1);
        if hdr.is_some_and(|hdr| is_left_for_c(hdr, lookup_avma)) {
            return self.step_by_frame_pointer(read);
        }
        if TABLES_PASS_OVER && hdr.is_some_and(|hdr| is_signal_return(hdr, lookup_avma)) {
            return self.step_by_ucontext(read).unwrap_or(FullStep::Stop);
        }
        let Some(found) = hdr.and_then(|hdr| find_row(hdr, lookup_avma)) else {
            if hdr.is_some_and(|hdr| is_signal_return(hdr, lookup_avma)) {
                return self.step_by_ucontext(read).unwrap_or(FullStep::Stop);
            }
            if hdr.is_some_and(|hdr| is_entered_by_return(hdr, lookup_avma)) {
                return FullStep::Root;
            }
            return self.step_by_frame_pointer(read);
        };
        self.step_by_row(&found.row, found.is_signal_frame, read).unwrap_or(FullStep::Stop)
    }

    /// Unwinds a frame of code whose rule is known without tables.
    pub(crate) fn step_by_rule(
        &mut self,
        rule: Rule,
        read: &mut dyn FnMut(usize) -> Option<usize>,
    ) -> FullStep {
        match rule.step(self.pc(), self.sp(), self.bp(), self.is_exact, read) {
            Step::Caller { pc, sp, bp } => {
                if rule.restores_bp() {
                    // The locations of the other saved registers are unknown.
                    *self = Self { values: [0; COLUMNS], known: 0, link: None, is_exact: false };
                    self.set(FRAME_POINTER, bp as u64);
                }
                self.set(RETURN_ADDRESS, pc as u64);
                self.set(STACK_POINTER, sp as u64);
                self.link = None;
                self.is_exact = false;
                FullStep::Caller
            }
            Step::Root => FullStep::Root,
            Step::Slow | Step::Unreadable => FullStep::Stop,
        }
    }

    fn step_by_frame_pointer(&mut self, read: &mut dyn FnMut(usize) -> Option<usize>) -> FullStep {
        let bp = self.bp();
        if bp == 0 {
            return FullStep::Root;
        }
        let (Some(pc), Some(caller_bp)) = (read(bp.wrapping_add(RETURN_ADDRESS_IN_RECORD)), read(bp)) else {
            return FullStep::Stop;
        };
        if pc == 0 {
            return FullStep::Root;
        }
        let mut caller = Self { values: [0; COLUMNS], known: 0, link: None, is_exact: false };
        caller.set(RETURN_ADDRESS, unsigned(pc) as u64);
        caller.set(STACK_POINTER, bp.wrapping_add(FRAME_RECORD_BYTES) as u64);
        caller.set(FRAME_POINTER, caller_bp as u64);
        *self = caller;
        FullStep::Caller
    }

    fn step_by_ucontext(&mut self, read: &mut dyn FnMut(usize) -> Option<usize>) -> Option<FullStep> {
        let mut caller = Self { values: [0; COLUMNS], known: 0, link: None, is_exact: true };
        for register in 0..COLUMNS {
            caller.set(register, read(self.sp().wrapping_add(ucontext::at(register)))? as u64);
        }
        caller.set(RETURN_ADDRESS, caller.get(RETURN_ADDRESS)?.wrapping_add(1));
        caller.link = match ucontext::LINK_AT {
            Some(place) => Some(read(self.sp().wrapping_add(place))? as u64),
            None => None,
        };
        *self = caller;
        Some(FullStep::Caller)
    }

    fn step_by_row(
        &mut self,
        row: &Row<COLUMNS>,
        is_signal_frame: bool,
        read: &mut dyn FnMut(usize) -> Option<usize>,
    ) -> Option<FullStep> {
        // In an expression the return address column means the address of the instruction.
        let mut here = *self;
        if self.is_exact {
            here.set(RETURN_ADDRESS, (self.pc() as u64).wrapping_sub(1));
        }
        let cfa = match row.cfa {
            Cfa::Register(register, offset) => here.get(usize::from(register))?.wrapping_add_signed(offset),
            Cfa::Expression(expression) => evaluate(expression, &|number| here.get(number), None, read)?,
        };
        let mut caller = Self { values: [0; COLUMNS], known: 0, link: None, is_exact: is_signal_frame };
        caller.set(STACK_POINTER, cfa);
        for number in 0..COLUMNS {
            let value = match row.column(number) {
                Column::Undefined if number == RETURN_ADDRESS => return Some(FullStep::Root),
                Column::Undefined => continue,
                Column::Same if number == STACK_POINTER => continue,
                Column::Same if number == RETURN_ADDRESS && !RETURN_ADDRESS_IS_REGISTER => continue,
                Column::Same if number == RETURN_ADDRESS && self.link.is_some() => self.link?,
                Column::Same => match here.get(number) {
                    Some(value) => value,
                    None => continue,
                },
                Column::Offset(offset) => match read(cfa.wrapping_add_signed(offset) as usize) {
                    Some(value) => value as u64,
                    // Described by the table but popped already: only the two registers that every
                    // step needs are required.
                    None if number != RETURN_ADDRESS && number != FRAME_POINTER => continue,
                    None => return None,
                },
                Column::ValueOffset(offset) => cfa.wrapping_add_signed(offset),
                Column::Register(register) => here.get(usize::from(register))?,
                Column::Expression(expression) => {
                    let address = evaluate(expression, &|number| here.get(number), Some(cfa), read)?;
                    read(address as usize)? as u64
                }
                Column::ValueExpression(expression) => {
                    evaluate(expression, &|number| here.get(number), Some(cfa), read)?
                }
            };
            caller.set(number, value);
        }
        let pc = caller.get(RETURN_ADDRESS)?;
        if pc == 0 {
            return Some(FullStep::Root);
        }
        let pc = if is_signal_frame { pc.wrapping_add(1) } else { unsigned(pc as usize) as u64 };
        caller.set(RETURN_ADDRESS, pc);
        *self = caller;
        Some(FullStep::Caller)
    }
}
