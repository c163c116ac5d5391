//! Rule of one code address: a row of the tables, and its application to a frame's registers.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, EvaluationResult, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _, UnwindTableRow, Value, Vendor,
};
use heapr_known::machine::Columns;

/// Largest entry in bytes that is read; usual ones have some dozen bytes.
const ENTRY_BYTES_MAX: usize = 1 << 16;
/// Largest number of steps of an expression, which may loop.
const STEPS_MAX: u32 = 1000;

/// Registers of a frame by their numbers in unwind tables ([`Columns`]); `None` for unknown ones.
pub type FrameRegisters = Vec<Option<u64>>;

/// A row of the tables.
#[derive(Debug)]
pub struct UnwindRule {
    /// Bytes of the common entry and the entry, for expressions.
    bytes: Vec<u8>,
    row: UnwindTableRow<usize>,
    /// Whether a signal has interrupted the caller, so that it resumes at this address instead of
    /// behind a call.
    pub is_of_signal: bool,
}

impl UnwindRule {
    /// Reads the rule for the code at `pc` from the entry at `entry_address`
    /// ([`UnwindIndex::entry_address`]). `bytes_at` returns a number of bytes of the tables at an
    /// address. `None`: the entry is damaged, or not of this code.
    ///
    /// [`UnwindIndex::entry_address`]: crate::UnwindIndex::entry_address
    #[must_use]
    pub fn of_entry(
        columns: &Columns,
        bytes_at: &dyn Fn(u64, usize) -> Option<Vec<u8>>,
        entry_address: u64,
        pc: u64,
    ) -> Option<Self> {
        let entry = read_entry(bytes_at, entry_address)?;
        // The field is the distance back from itself.
        let common_off = u32::from_le_bytes(entry.get(4..8)?.try_into().ok()?);
        let common_address = entry_address.wrapping_add(4).wrapping_sub(u64::from(common_off));
        // Both entries form a section: the common one, then the entry.
        let mut bytes = read_entry(bytes_at, common_address)?;
        let at = bytes.len();
        bytes.extend_from_slice(&entry);
        let distance = u32::try_from(at + 4).ok()?;
        bytes.get_mut(at + 4..at + 8)?.copy_from_slice(&distance.to_le_bytes());
        // Addresses in the entry are relative to its location.
        let bases = BaseAddresses::default().set_eh_frame(entry_address.wrapping_sub(at as u64));
        let mut section = EhFrame::new(&bytes, LittleEndian);
        if columns.may_sign_return_addresses {
            section.set_vendor(Vendor::AArch64);
        }
        let entry = section.fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset).ok()?;
        if !entry.contains(pc) {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, pc).ok()?.clone();
        let is_of_signal = entry.is_signal_trampoline();
        Some(Self { bytes, row, is_of_signal })
    }

    /// Whether a frame has its return address still in a register, as a function that calls nothing
    /// has on some processors.
    #[must_use]
    pub fn keeps_return_address(&self, columns: &Columns) -> bool {
        let number = u16::try_from(columns.return_address).unwrap_or(u16::MAX);
        matches!(self.row.register(Register(number)), None | Some(RegisterRule::SameValue))
    }

    /// Registers of the caller of a frame with these registers; `None` if unknown. If the thread
    /// began with the frame, the caller has no return address. `link`: the return address of a
    /// frame that may have it still in a register. `word_at` reads 8 bytes of the thread's memory.
    #[must_use]
    pub fn caller(
        &self,
        columns: &Columns,
        registers: &[Option<u64>],
        link: Option<u64>,
        word_at: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<FrameRegisters> {
        let frame = Frame { rule: self, registers, word_at };
        let cfa = match self.row.cfa() {
            &CfaRule::RegisterAndOffset { register, offset } => {
                frame.register(register)?.wrapping_add_signed(offset)
            }
            CfaRule::Expression(expression) => frame.evaluated(expression, None)?,
        };
        let numbers = 0..columns.thread_indices.len();
        let link = link.filter(|_| self.keeps_return_address(columns));
        let value = |number| match link {
            Some(link) if number == columns.return_address => Some(Some(link)),
            _ => frame.caller_register(columns, number, cfa),
        };
        numbers.map(value).collect()
    }
}

/// Application of a rule to a frame.
struct Frame<'f> {
    rule: &'f UnwindRule,
    registers: &'f [Option<u64>],
    word_at: &'f dyn Fn(u64) -> Option<u64>,
}

impl Frame<'_> {
    /// The caller's value of a register: `Some(None)` if the caller has lost it, `None` if the rule
    /// cannot be applied. `cfa` is the caller's stack pointer.
    fn caller_register(&self, columns: &Columns, number: usize, cfa: u64) -> Option<Option<u64>> {
        let known = |value: Option<u64>| value.map(Some);
        match self.rule.row.register(Register(u16::try_from(number).ok()?)) {
            Some(RegisterRule::Undefined) => Some(None),
            None if number == columns.stack_pointer => Some(Some(cfa)),
            None if number == columns.return_address => None,
            None if !columns.preserved.contains(&number) => Some(None),
            None | Some(RegisterRule::SameValue) => Some(*self.registers.get(number)?),
            Some(RegisterRule::Offset(offset)) => known((self.word_at)(cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::ValOffset(offset)) => Some(Some(cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::Register(register)) => known(self.register(register)),
            Some(RegisterRule::Expression(expression)) => {
                known((self.word_at)(self.evaluated(&expression, Some(cfa))?))
            }
            Some(RegisterRule::ValExpression(expression)) => known(self.evaluated(&expression, Some(cfa))),
            _ => None,
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        *self.registers.get(usize::from(register.0))?
    }

    /// Result of an expression; `cfa` is its first value, if it has one.
    fn evaluated(&self, expression: &UnwindExpression<usize>, cfa: Option<u64>) -> Option<u64> {
        let section = EhFrame::new(&self.rule.bytes, LittleEndian);
        let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let expression: gimli::Expression<EndianSlice<'_, LittleEndian>> = expression.get(&section).ok()?;
        let mut evaluation = expression.evaluation(encoding);
        evaluation.set_max_iterations(STEPS_MAX);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().ok()?;
        for _ in 0..STEPS_MAX {
            result = match result {
                EvaluationResult::Complete => return evaluation.value_result()?.to_u64(u64::MAX).ok(),
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    let word = (self.word_at)(address)?;
                    evaluation.resume_with_memory(Value::Generic(word)).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(register)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresCallFrameCfa => evaluation.resume_with_call_frame_cfa(cfa?).ok()?,
                _ => return None,
            };
        }
        None
    }
}

/// Reads an entry of the tables with the length before it.
fn read_entry(bytes_at: &dyn Fn(u64, usize) -> Option<Vec<u8>>, address: u64) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(bytes_at(address, 4)?.try_into().ok()?) as usize;
    // 0xffff_ffff marks a 64-bit length, which is not used in practice.
    (4..=ENTRY_BYTES_MAX).contains(&length).then(|| bytes_at(address, 4 + length))?
}
