//! Call frame instructions, which lead from a function's first row of the unwind table to the row
//! of an address.
//!
//! The rules are those of DWARF (version 5, section 6.4.2).

use super::byte_reader::{Reader, Segments};
use super::frame_entry::Cie;
use super::unwind_row::{Cfa, Column, Expression, Row};

/// Largest nesting of DW_CFA_remember_state that is followed; compilers use one level, and each
/// takes a row of stack.
const REMEMBERED_MAX: usize = 2;

/// Executes call frame instructions from the location `start` until it passes `until`.
///
/// Long: one table of the instructions, in the order of their numbers.
pub(super) fn run<const N: usize>(
    row: &mut Row<N>,
    initial: &Row<N>,
    mut code: Reader,
    cie: &Cie,
    (start, until): (usize, usize),
    segments: &Segments,
) -> Option<()> {
    let mut location = start;
    let mut remembered: [Option<Row<N>>; REMEMBERED_MAX] = [None; REMEMBERED_MAX];
    let mut remembered_count = 0_usize;
    let factored = |value: i64| value.wrapping_mul(cie.data_alignment);
    while !code.is_at_end() {
        let instruction = code.u8()?;
        let operand = instruction & 0x3f;
        let mut advance = None;
        match instruction >> 6 {
            1 => advance = Some(u64::from(operand)),
            2 => row.set(u64::from(operand), Column::Offset(factored(code.uleb()?.cast_signed()))),
            3 => row.restore(initial, u64::from(operand)),
            _ => match instruction {
                0x00 => {}
                0x01 => {
                    let to = code.pointer(cie.pointer_encoding, 0, segments)?;
                    if to > until {
                        return Some(());
                    }
                    location = to;
                }
                0x02 => advance = Some(u64::from(code.u8()?)),
                0x03 => advance = Some(u64::from(code.u16()?)),
                0x04 => advance = Some(u64::from(code.u32()?)),
                0x05 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.uleb()?.cast_signed())));
                }
                0x06 => row.restore(initial, code.uleb()?),
                0x07 => row.set(code.uleb()?, Column::Undefined),
                0x08 => row.set(code.uleb()?, Column::Same),
                0x09 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Register(u8::try_from(code.uleb()?).ok()?));
                }
                0x0a => {
                    *remembered.get_mut(remembered_count)? = Some(*row);
                    remembered_count = remembered_count.wrapping_add(1);
                }
                0x0b => {
                    remembered_count = remembered_count.checked_sub(1)?;
                    *row = (*remembered.get(remembered_count)?)?;
                }
                0x0c => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    row.cfa = Cfa::Register(register, code.uleb()?.cast_signed());
                }
                0x0d => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    let Cfa::Register(_, offset) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, offset);
                }
                0x0e => {
                    let Cfa::Register(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, code.uleb()?.cast_signed());
                }
                0x0f => row.cfa = Cfa::Expression(Expression::parse(&mut code)?),
                0x10 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Expression(Expression::parse(&mut code)?));
                }
                0x11 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.sleb()?)));
                }
                0x12 => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    row.cfa = Cfa::Register(register, factored(code.sleb()?));
                }
                0x13 => {
                    let Cfa::Register(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, factored(code.sleb()?));
                }
                0x14 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueOffset(factored(code.uleb()?.cast_signed())));
                }
                0x15 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueOffset(factored(code.sleb()?)));
                }
                0x16 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueExpression(Expression::parse(&mut code)?));
                }
                // DW_CFA_AARCH64_negate_ra_state_with_pc, DW_CFA_AARCH64_negate_ra_state: whether
                // the return address is signed, which is of no matter here: each one that is read
                // loses its signature. (Other processors do not have them.)
                0x2c | 0x2d => {}
                // DW_CFA_GNU_args_size: size of the callee's arguments, not used here.
                0x2e => drop(code.uleb()?),
                // DW_CFA_GNU_negative_offset_extended.
                0x2f => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.uleb()?.cast_signed().wrapping_neg())));
                }
                _ => return None,
            },
        }
        if let Some(delta) = advance {
            let to = location.wrapping_add(delta.wrapping_mul(cie.code_alignment) as usize);
            if to > until {
                return Some(());
            }
            location = to;
        }
    }
    Some(())
}
