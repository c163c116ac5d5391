//! Packs rows of the unwind table into the processor's [`Rule`], for frames whose unwinding needs
//! only (pc, sp, bp), which are nearly all.

use super::byte_reader::Reader;
use super::call_frame::{Found, UnwindTables, find_row};
use super::recognised_code::{is_entered_by_return, is_left_for_c, is_signal_return};
use super::unwind_row::{Cfa, Column, Expression, Row, STEP_COLUMNS};
use crate::arch::columns::{FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER, WORD_BYTES};
use crate::arch::signal_return::{TABLES_PASS_OVER, ucontext};
use crate::arch::{Base, Rule};

/// Returns the rule at an address. If the module has no unwind information for it, the code is
/// assumed to have a frame pointer.
#[must_use]
pub(crate) fn rule_for(hdr: &UnwindTables, lookup_avma: usize) -> Rule {
    if is_left_for_c(hdr, lookup_avma) {
        return Rule::FRAME_POINTER_ACROSS;
    }
    let of_signal =
        || Rule::of_signal(ucontext::at(STACK_POINTER) as i64, ucontext::at(FRAME_POINTER) as i64);
    if TABLES_PASS_OVER && is_signal_return(hdr, lookup_avma) {
        return of_signal();
    }
    match find_row(hdr, lookup_avma) {
        Some(found) => compact(&found),
        None if is_signal_return(hdr, lookup_avma) => of_signal(),
        None if is_entered_by_return(hdr, lookup_avma) => Rule::IS_ROOT,
        None => Rule::FRAME_POINTER,
    }
}

/// Packs a row.
fn compact(found: &Found<STEP_COLUMNS>) -> Rule {
    let rule = compact_row(&found.row);
    // Only the rule of a signal frame marks the caller's address as exact.
    if found.is_signal_frame == rule.is_signal_frame() || rule == Rule::IS_ROOT {
        rule
    } else {
        Rule::IS_SLOW
    }
}

fn compact_row(row: &Row<STEP_COLUMNS>) -> Rule {
    let return_address = row.column(RETURN_ADDRESS);
    let stack_pointer = row.column(STACK_POINTER);
    if let Column::Undefined = return_address {
        return Rule::IS_ROOT;
    }
    if let (Column::Expression(sp), Column::Expression(bp)) = (stack_pointer, row.column(FRAME_POINTER)) {
        return signal(row, return_address, sp, bp);
    }
    if !matches!(stack_pointer, Column::Same | Column::Undefined) {
        return Rule::IS_SLOW;
    }
    let return_address = match return_address {
        Column::Same => None,
        Column::Offset(offset) => Some(offset),
        _ => return Rule::IS_SLOW,
    };
    let frame_pointer = match row.column(FRAME_POINTER) {
        Column::Same | Column::Undefined => None,
        Column::Offset(offset) => Some(offset),
        Column::Expression(expression) => return realigned(row, return_address, expression),
        _ => return Rule::IS_SLOW,
    };
    match row.cfa {
        Cfa::Register(register, offset) => match usize::from(register) {
            STACK_POINTER => Rule::of_frame(Base::StackPointer, offset, return_address, frame_pointer),
            FRAME_POINTER => Rule::of_frame(Base::FramePointer, offset, return_address, frame_pointer),
            _ => Rule::IS_SLOW,
        },
        Cfa::Expression(expression) if frame_pointer.is_none() => linkage_table(expression, return_address),
        Cfa::Expression(_) => Rule::IS_SLOW,
    }
}

/// Packs a realigned stack: the caller's frame pointer is at bp + b, the CFA at bp + a.
fn realigned(row: &Row<STEP_COLUMNS>, return_address: Option<i64>, bp: Expression) -> Rule {
    let Cfa::Expression(cfa) = row.cfa else { return Rule::IS_SLOW };
    match (dereferenced(cfa), based(bp)) {
        (Some((FRAME_POINTER, a)), Some((FRAME_POINTER, b))) => Rule::of_realigned(a, b, return_address),
        _ => Rule::IS_SLOW,
    }
}

/// Packs a signal frame: the caller's stack pointer and the CFA are at sp + a, and the interrupted
/// address is in the next word. The frame pointer is at sp + b.
fn signal(row: &Row<STEP_COLUMNS>, return_address: Column, sp: Expression, bp: Expression) -> Rule {
    let (Cfa::Expression(cfa), Column::Expression(pc)) = (row.cfa, return_address) else {
        return Rule::IS_SLOW;
    };
    match (dereferenced(cfa), based(sp), based(pc), based(bp)) {
        (
            Some((STACK_POINTER, a)),
            Some((STACK_POINTER, same)),
            Some((STACK_POINTER, behind)),
            Some((STACK_POINTER, b)),
        ) if same == a && behind == a.wrapping_add(WORD_BYTES) => Rule::of_signal(a, b),
        _ => Rule::IS_SLOW,
    }
}

const OP_DEREF: u8 = 0x06;
const OP_BREG0: u8 = 0x70;

/// Parses an expression that is only `breg(register) offset`.
fn based(expression: Expression) -> Option<(usize, i64)> {
    let mut code = expression.code();
    let based = base(&mut code)?;
    code.is_at_end().then_some(based)
}

/// Parses an expression that is only `breg(register) offset; deref`.
fn dereferenced(expression: Expression) -> Option<(usize, i64)> {
    let mut code = expression.code();
    let based = base(&mut code)?;
    (code.u8()? == OP_DEREF && code.is_at_end()).then_some(based)
}

fn base(code: &mut Reader) -> Option<(usize, i64)> {
    let register = code.u8()?.checked_sub(OP_BREG0)?;
    if usize::from(register) > RETURN_ADDRESS {
        return None;
    }
    Some((usize::from(register), code.sleb()?))
}

/// Packs the linkers' expression for a procedure linkage table.
fn linkage_table(expression: Expression, return_address: Option<i64>) -> Rule {
    let mut code = expression.code();
    let whole = code.bytes().filter(|_| code.is_at_end());
    whole.map_or(Rule::IS_SLOW, |whole| Rule::of_linkage_table(&whole, return_address))
}
