//! Unwind rule at one address of code: a row of the unwind tables, read from the target's memory.
//!
//! Files are not read, because the file at a module's path may be another build by this time.
//! Untrusted: all lengths are bounded.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice, EvaluationResult, LittleEndian,
    Pointer, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _, UnwindTableRow,
    Value,
};

use heapr_known::machine::HERE;

use crate::arch::FrameRegisters;
use crate::memory::TargetMemory;

/// Largest index in bytes that is read: some million functions with 8 bytes each.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Largest entry in bytes that is read; usual ones have some dozen bytes.
const ENTRY_BYTES_MAX: usize = 1 << 16;
const PROGRAM_HEADERS_MAX: u16 = 1000;

/// Index of a module's unwind tables.
#[derive(Debug)]
pub(crate) struct UnwindIndex {
    avma: u64,
    bytes: Vec<u8>,
}

impl UnwindIndex {
    /// Reads the index of the module whose file begins at `header_avma`.
    pub(crate) fn of_module(memory: &impl TargetMemory, header_avma: u64) -> Option<Self> {
        const PT_LOAD: u32 = 1;
        const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
        let file = memory.read_vec(header_avma, 64).ok()?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        let (headers_off, count) = (number(&file[32..40]), number(&file[56..58]) as u16);
        if !file.starts_with(b"\x7fELF\x02\x01") || count > PROGRAM_HEADERS_MAX {
            return None;
        }
        let headers = memory.read_vec(header_avma.wrapping_add(headers_off), usize::from(count) * 56).ok()?;
        let of_kind =
            |kind: u32| headers.chunks_exact(56).filter(move |one| number(&one[..4]) as u32 == kind);
        let first = of_kind(PT_LOAD).find(|header| number(&header[8..16]) == 0)?;
        let bias = header_avma.wrapping_sub(number(&first[16..24]));
        let index = of_kind(PT_GNU_EH_FRAME).next()?;
        let (avma, bytes) = (bias.wrapping_add(number(&index[16..24])), number(&index[40..48]));
        let bytes = memory.read_vec(avma, usize::try_from(bytes.min(INDEX_BYTES_MAX)).ok()?).ok()?;
        Some(Self { avma, bytes })
    }

    /// Rule at an address; `None` if the tables have no entry for it.
    pub(crate) fn rule(&self, memory: &impl TargetMemory, avma: u64) -> Option<UnwindRule> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.avma);
        let index = EhFrameHdr::new(&self.bytes, LittleEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(entry_avma) = index.table()?.lookup(avma, &bases).ok()? else { return None };
        UnwindRule::of_entry(memory, entry_avma, avma)
    }
}

/// A row of the tables.
#[derive(Debug)]
pub(crate) struct UnwindRule {
    /// Bytes of the entry and of its common entry (CIE), for expressions.
    bytes: Vec<u8>,
    row: UnwindTableRow<usize>,
    /// Whether a signal has interrupted the caller, so that it resumes at this address instead of
    /// behind a call.
    pub(crate) is_of_signal: bool,
}

impl UnwindRule {
    fn of_entry(memory: &impl TargetMemory, entry_avma: u64, avma: u64) -> Option<Self> {
        let entry = read_entry(memory, entry_avma)?;
        // The field is the distance back from itself.
        let common_off = u32::from_le_bytes(entry.get(4..8)?.try_into().ok()?);
        let common_avma = entry_avma.wrapping_add(4).wrapping_sub(u64::from(common_off));
        // Both entries form a section: the common one, then the entry.
        let mut bytes = read_entry(memory, common_avma)?;
        let at = bytes.len();
        bytes.extend_from_slice(&entry);
        let distance = u32::try_from(at + 4).ok()?;
        bytes[at + 4..at + 8].copy_from_slice(&distance.to_le_bytes());
        // Addresses in the entry are relative to its location.
        let bases = BaseAddresses::default().set_eh_frame(entry_avma.wrapping_sub(at as u64));
        let section = EhFrame::new(&bytes, LittleEndian);
        let entry = section.fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset).ok()?;
        if !entry.contains(avma) {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, avma).ok()?.clone();
        let is_of_signal = entry.is_signal_trampoline();
        Some(Self { bytes, row, is_of_signal })
    }

    /// Registers of the caller of a frame with these registers; `None` if unknown. If the thread
    /// began with the frame, the caller has no return address.
    pub(crate) fn caller(
        &self,
        memory: &impl TargetMemory,
        registers: &FrameRegisters,
    ) -> Option<FrameRegisters> {
        let cfa = match self.row.cfa() {
            &CfaRule::RegisterAndOffset { register, offset } => {
                register_of(registers, register)?.wrapping_add_signed(offset)
            }
            CfaRule::Expression(expression) => self.evaluated(memory, registers, expression, None)?,
        };
        let mut caller = FrameRegisters::default();
        for (number, value) in caller.iter_mut().enumerate() {
            *value = match self.row.register(Register(number as u16)) {
                Some(RegisterRule::Undefined) => None,
                None if number == HERE.columns.stack_pointer => Some(cfa),
                None if number == HERE.columns.return_address => return None,
                None if !HERE.columns.preserved.contains(&number) => None,
                None | Some(RegisterRule::SameValue) => registers[number],
                Some(RegisterRule::Offset(offset)) => {
                    Some(memory.read_u64(cfa.wrapping_add_signed(offset)).ok()?)
                }
                Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::Register(register)) => Some(register_of(registers, register)?),
                Some(RegisterRule::Expression(expression)) => {
                    let place_avma = self.evaluated(memory, registers, &expression, Some(cfa))?;
                    Some(memory.read_u64(place_avma).ok()?)
                }
                Some(RegisterRule::ValExpression(expression)) => {
                    Some(self.evaluated(memory, registers, &expression, Some(cfa))?)
                }
                _ => return None,
            };
        }
        Some(caller)
    }

    fn evaluated(
        &self,
        memory: &impl TargetMemory,
        registers: &FrameRegisters,
        expression: &UnwindExpression<usize>,
        cfa: Option<u64>,
    ) -> Option<u64> {
        const STEPS_MAX: u32 = 1000;
        let section = EhFrame::new(&self.bytes, LittleEndian);
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
                    let word = memory.read_u64(address).ok()?;
                    evaluation.resume_with_memory(Value::Generic(word)).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = register_of(registers, register)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresCallFrameCfa => evaluation.resume_with_call_frame_cfa(cfa?).ok()?,
                _ => return None,
            };
        }
        None
    }
}

fn register_of(registers: &FrameRegisters, register: Register) -> Option<u64> {
    *registers.get(usize::from(register.0))?
}

/// Reads an entry of the tables with the length before it.
fn read_entry(memory: &impl TargetMemory, avma: u64) -> Option<Vec<u8>> {
    let length = memory.read_u32(avma).ok()? as usize;
    // 0xffff_ffff marks a 64-bit length, which is not used in practice.
    (4..=ENTRY_BYTES_MAX).contains(&length).then(|| memory.read_vec(avma, 4 + length).ok())?
}
