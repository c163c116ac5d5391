//! Interpreter of a filter's program, for a call that has not been made.
//!
//! The program is classic BPF, as the kernel has checked it. It reads words of [`CallFacts`], jumps
//! forwards only, and ends with the action for the call. Sources: Linux,
//! Documentation/userspace-api/seccomp_filter.rst; networking/filter.rst for the instructions.

use crate::arch::AUDIT_ARCHITECTURE;

/// A BPF instruction in the kernel's layout (`struct sock_filter`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation code.
    pub code: u16,
    /// Number of instructions to skip if a comparison holds.
    pub if_true: u8,
    /// Number of instructions to skip if a comparison does not hold.
    pub if_false: u8,
    /// Immediate operand.
    pub value: u32,
}

/// Data of a call that the program can read (`struct seccomp_data`, 64 bytes): number,
/// architecture, address of the instruction, arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFacts {
    words: [u32; 16],
}

impl CallFacts {
    pub(super) fn new(number: u32, arguments: [u64; 6]) -> Self {
        let [a, b, c, d, e, f] = arguments.map(|argument| (argument as u32, (argument >> 32) as u32));
        // Words 2 and 3 are the address of the instruction.
        Self {
            words: [
                number,
                AUDIT_ARCHITECTURE,
                0,
                0,
                a.0,
                a.1,
                b.0,
                b.1,
                c.0,
                c.1,
                d.0,
                d.1,
                e.0,
                e.1,
                f.0,
                f.1,
            ],
        }
    }

    fn word(&self, offset: u32) -> Option<u32> {
        offset.is_multiple_of(4).then(|| self.words.get(offset as usize / 4).copied()).flatten()
    }
}

/// Runs a filter and returns its action for the call. `instruction` returns an instruction by
/// number. `None`: the program is invalid, and the kernel would have refused it.
pub(super) fn run(instruction: impl Fn(usize) -> Option<Instruction>, call: &CallFacts) -> Option<u32> {
    let (mut a, mut x) = (0_u32, 0_u32);
    let mut memory = [0_u32; 16];
    let mut next = 0_usize;
    loop {
        let Instruction { code, if_true, if_false, value } = instruction(next)?;
        next = next.wrapping_add(1);
        let operand = if code & 0x08 == 0 { value } else { x };
        match code {
            // Loads: words of the call's data, constants, memory, length of the call's data.
            0x20 => a = call.word(value)?,
            0x00 => a = value,
            0x01 => x = value,
            0x60 => a = *memory.get(value as usize)?,
            0x61 => x = *memory.get(value as usize)?,
            0x80 => a = 64,
            0x81 => x = 64,
            0x02 => *memory.get_mut(value as usize)? = a,
            0x03 => *memory.get_mut(value as usize)? = x,
            // Arithmetic.
            0x04 | 0x0c => a = a.wrapping_add(operand),
            0x14 | 0x1c => a = a.wrapping_sub(operand),
            0x24 | 0x2c => a = a.wrapping_mul(operand),
            // The kernel ends a program that divides by zero with 0, which kills the thread.
            0x34 | 0x3c => match a.checked_div(operand) {
                Some(quotient) => a = quotient,
                None => return Some(0),
            },
            0x44 | 0x4c => a |= operand,
            0x54 | 0x5c => a &= operand,
            0x64 | 0x6c => a = a.wrapping_shl(operand),
            0x74 | 0x7c => a = a.wrapping_shr(operand),
            0x84 => a = a.wrapping_neg(),
            0xa4 | 0xac => a ^= operand,
            // Jumps.
            0x05 => next = next.checked_add(value as usize)?,
            0x15 | 0x1d => {
                next = next.wrapping_add(usize::from(if a == operand { if_true } else { if_false }))
            }
            0x25 | 0x2d => {
                next = next.wrapping_add(usize::from(if a > operand { if_true } else { if_false }))
            }
            0x35 | 0x3d => {
                next = next.wrapping_add(usize::from(if a >= operand { if_true } else { if_false }))
            }
            0x45 | 0x4d => {
                next = next.wrapping_add(usize::from(if a & operand != 0 { if_true } else { if_false }))
            }
            0x06 => return Some(value),
            0x16 => return Some(a),
            0x07 => x = a,
            0x87 => a = x,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &[Instruction], call: &CallFacts) -> Option<u32> {
        super::run(|number| program.get(number).copied(), call)
    }

    fn instruction(code: u16, if_true: u8, if_false: u8, value: u32) -> Instruction {
        Instruction { code, if_true, if_false, value }
    }

    #[test]
    fn a_program_sees_number_and_arguments_and_jumps() {
        const ALLOW: u32 = 0x7fff_0000;
        // mmap (9) with PROT_EXEC (4) is an error, all else of it is allowed; other calls end the
        // process.
        let program = [
            instruction(0x20, 0, 0, 0),
            instruction(0x15, 0, 4, 9),
            instruction(0x20, 0, 0, 16 + 2 * 8),
            instruction(0x45, 0, 1, 4),
            instruction(0x06, 0, 0, 0x0005_0001),
            instruction(0x06, 0, 0, ALLOW),
            instruction(0x06, 0, 0, 0x8000_0000),
        ];
        let answer =
            |number, protection| run(&program, &CallFacts::new(number, [0, 4096, protection, 0, 0, 0]));
        assert_eq!(answer(9, 3), Some(ALLOW));
        assert_eq!(answer(9, 5), Some(0x0005_0001));
        assert_eq!(answer(11, 3), Some(0x8000_0000));
    }

    #[test]
    fn arithmetic_and_memory() {
        let program = [
            instruction(0x00, 0, 0, 7),
            instruction(0x02, 0, 0, 3),
            instruction(0x24, 0, 0, 6),
            instruction(0x07, 0, 0, 0),
            instruction(0x60, 0, 0, 3),
            instruction(0x2c, 0, 0, 0),
            instruction(0x16, 0, 0, 0),
        ];
        assert_eq!(run(&program, &CallFacts::new(0, [0; 6])), Some(7 * 42));
    }

    #[test]
    fn what_is_no_program_has_no_answer() {
        let facts = CallFacts::new(0, [0; 6]);
        assert_eq!(run(&[], &facts), None);
        assert_eq!(run(&[instruction(0x20, 0, 0, 64)], &facts), None);
        assert_eq!(run(&[instruction(0x20, 0, 0, 2)], &facts), None);
        assert_eq!(run(&[instruction(0xff, 0, 0, 0)], &facts), None);
        assert_eq!(run(&[instruction(0x05, 0, 0, u32::MAX)], &facts), None);
    }
}
