//! DWARF expressions, as they occur in call frame information.

use super::byte_reader::Reader;
use super::unwind_row::Expression;

/// Returns the register with a number, if it is known.
type Registers<'a> = &'a dyn Fn(usize) -> Option<u64>;

/// Largest number of values on the evaluation stack; expressions in use need four.
const STACK_MAX: usize = 16;
/// Largest number of operations that are executed: an expression may branch backwards.
const STEPS_MAX: usize = 1000;

struct Stack {
    values: [u64; STACK_MAX],
    count: usize,
}

impl Stack {
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.count)? = value;
        self.count = self.count.wrapping_add(1);
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        self.values.get(self.count).copied()
    }

    /// Returns the value `depth` below the top.
    fn pick(&self, depth: usize) -> Option<u64> {
        self.values.get(self.count.checked_sub(1)?.checked_sub(depth)?).copied()
    }
}

/// Evaluates an expression. `cfa` is pushed first, if the standard says so; `read` returns a word
/// of memory.
pub(super) fn evaluate(
    expression: Expression,
    registers: Registers<'_>,
    cfa: Option<u64>,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<u64> {
    let whole = expression.code();
    let mut code = whole;
    let mut stack = Stack { values: [0; STACK_MAX], count: 0 };
    if let Some(cfa) = cfa {
        stack.push(cfa)?;
    }
    for _ in 0..STEPS_MAX {
        if code.is_at_end() {
            return stack.pop();
        }
        execute(&mut code, whole, &mut stack, registers, read)?;
    }
    None
}

fn execute(
    code: &mut Reader,
    whole: Reader,
    stack: &mut Stack,
    registers: Registers<'_>,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<()> {
    let operation = code.u8()?;
    match operation {
        0x03 => stack.push(code.u64()?),
        0x06 => {
            let address = stack.pop()? as usize;
            stack.push(read(address)? as u64)
        }
        0x08 => stack.push(u64::from(code.u8()?)),
        0x09 => stack.push(i64::from(code.u8()?.cast_signed()).cast_unsigned()),
        0x0a => stack.push(u64::from(code.u16()?)),
        0x0b => stack.push(i64::from(code.u16()?.cast_signed()).cast_unsigned()),
        0x0c => stack.push(u64::from(code.u32()?)),
        0x0d => stack.push(i64::from(code.i32()?).cast_unsigned()),
        0x0e | 0x0f => stack.push(code.u64()?),
        0x10 => stack.push(code.uleb()?),
        0x11 => stack.push(code.sleb()?.cast_unsigned()),
        0x12 => stack.push(stack.pick(0)?),
        0x13 => stack.pop().map(drop),
        0x14 => stack.push(stack.pick(1)?),
        0x15 => {
            let depth = usize::from(code.u8()?);
            stack.push(stack.pick(depth)?)
        }
        0x16 => {
            let (top, second) = (stack.pop()?, stack.pop()?);
            stack.push(top)?;
            stack.push(second)
        }
        0x17 => {
            let (first, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
            stack.push(first)?;
            stack.push(third)?;
            stack.push(second)
        }
        0x19 => unary(stack, |value| value.cast_signed().wrapping_abs().cast_unsigned()),
        0x1f => unary(stack, u64::wrapping_neg),
        0x20 => unary(stack, |value| !value),
        0x23 => {
            let amount = code.uleb()?;
            unary(stack, |value| value.wrapping_add(amount))
        }
        0x28 | 0x2f => branch(operation, code, whole, stack),
        0x1a..=0x2e => binary(operation, stack),
        0x30..=0x4f => stack.push(u64::from(operation.wrapping_sub(0x30))),
        0x50..=0x6f => stack.push(registers(usize::from(operation.wrapping_sub(0x50)))?),
        0x70..=0x8f => {
            let offset = code.sleb()?;
            let value = registers(usize::from(operation.wrapping_sub(0x70)))?;
            stack.push(value.wrapping_add_signed(offset))
        }
        0x92 => {
            let register = usize::try_from(code.uleb()?).ok()?;
            let offset = code.sleb()?;
            stack.push(registers(register)?.wrapping_add_signed(offset))
        }
        0x94 => {
            let bytes = code.u8()?;
            let address = stack.pop()? as usize;
            let word = read(address)? as u64;
            let bits = u32::from(bytes).checked_mul(8)?;
            stack.push(if bits >= 64 { word } else { word & 1_u64.checked_shl(bits)?.wrapping_sub(1) })
        }
        0x96 => Some(()),
        _ => None,
    }
}

fn unary(stack: &mut Stack, compute: impl FnOnce(u64) -> u64) -> Option<()> {
    let value = stack.pop()?;
    stack.push(compute(value))
}

fn binary(operation: u8, stack: &mut Stack) -> Option<()> {
    let (top, second) = (stack.pop()?, stack.pop()?);
    let (signed_top, signed_second) = (top.cast_signed(), second.cast_signed());
    let shift = u32::try_from(top).ok().filter(|&bits| bits < 64);
    stack.push(match operation {
        0x1a => second & top,
        0x1b => signed_second.checked_div(signed_top)?.cast_unsigned(),
        0x1c => second.wrapping_sub(top),
        0x1d => second.checked_rem(top)?,
        0x1e => second.wrapping_mul(top),
        0x21 => second | top,
        0x22 => second.wrapping_add(top),
        0x24 => shift.map_or(0, |bits| second.wrapping_shl(bits)),
        0x25 => shift.map_or(0, |bits| second.wrapping_shr(bits)),
        0x26 => signed_second.wrapping_shr(shift.unwrap_or(63)).cast_unsigned(),
        0x27 => second ^ top,
        0x29 => u64::from(second == top),
        0x2a => u64::from(signed_second >= signed_top),
        0x2b => u64::from(signed_second > signed_top),
        0x2c => u64::from(signed_second <= signed_top),
        0x2d => u64::from(signed_second < signed_top),
        0x2e => u64::from(second != top),
        _ => return None,
    })
}

/// Executes DW_OP_bra (0x28) or DW_OP_skip (0x2f).
fn branch(operation: u8, code: &mut Reader, whole: Reader, stack: &mut Stack) -> Option<()> {
    let distance = code.u16()?.cast_signed();
    if operation == 0x28 && stack.pop()? == 0 {
        return Some(());
    }
    let to = code.position.wrapping_add_signed(isize::from(distance));
    if to < whole.position || to > whole.end {
        return None;
    }
    code.position = to;
    Some(())
}
