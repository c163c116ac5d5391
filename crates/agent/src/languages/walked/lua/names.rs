//! The name of a Lua function from the instruction that has called it, as Lua's own tracebacks
//! determine it. It comes from the names of variables and constants in the code.

use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::lua::layout::Layout;

const INSTRUCTION_BYTES: usize = 4;
const VALUE_BYTES: usize = 16;
const KIND_AT: usize = 8;
/// The lowest bits of a value's kind, and those of a text.
const KIND_BITS: u32 = 15;
const TEXT: u32 = 4;
/// A local variable: its name, and the instructions between which it exists.
const VARIABLE_BYTES: usize = 16;
const NAME_BYTES_MAX: usize = 256;
/// Largest number of instructions and variables that are read.
const LOOKED_AT_MAX: usize = 1 << 14;
/// For 5.1: the operation that makes a function; offsets of a prototype's inner prototypes, and of
/// the number of shared variables.
const CLOSURE: u32 = 36;
const PROTOTYPES_AT: usize = 32;
const SHARED_COUNT_AT: usize = 112;
/// Largest number of copies through which a variable is followed.
const COPIES_MAX: usize = 8;

/// Effect of an instruction, as far as names depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Other,
    /// Any other operation, with the result in its first register.
    Sets,
    Copies,
    /// Sets several registers, up to B; or B of them.
    SetsTo,
    SetsSome,
    GetsUpvalue,
    /// Reads a global, named by a constant (Bx).
    GetsGlobal,
    /// Reads a field, named by C: a register or constant; a constant; a register.
    GetsField,
    GetsConstantField,
    GetsRegisterField,
    /// Reads a method, named by C.
    GetsMethod,
    Calls,
    /// Calls an iterator: sets the registers from the second next on.
    Iterates,
    Jumps,
}

/// Format of a version's code.
#[derive(Debug)]
struct Code {
    /// Effects by range of operations.
    does: &'static [(u8, u8, Does)],
    /// First bit and number of bits of the parts of an instruction.
    a: (u32, u32),
    b: (u32, u32),
    c: (u32, u32),
    long: (u32, u32),
    /// First bit, number of bits and bias of a jump's distance.
    jump: (u32, u32, i64),
    /// The bit that marks C as a constant, and whether it is one of C's own bits.
    constant: u32,
    constant_is_in_c: bool,
    /// `Proto`: constants, variables and their number, upvalues and their number, size of one.
    constants: usize,
    constant_count: usize,
    variables: usize,
    variable_count: usize,
    upvalues: usize,
    upvalue_count: usize,
    upvalue_bytes: usize,
    /// Whether a value past which a jump leads is uncertain (5.2 and later).
    doubts_jumps: bool,
    /// Name of a function that is called as an iterator.
    iterator: Option<&'static str>,
}

use Does::*;

const OLD: Code = Code {
    does: &[],
    a: (6, 8),
    b: (23, 9),
    c: (14, 9),
    long: (14, 18),
    jump: (14, 18, (1 << 17) - 1),
    constant: 1 << 8,
    constant_is_in_c: true,
    constants: 16,
    constant_count: 76,
    variables: 48,
    variable_count: 92,
    upvalues: 56,
    upvalue_count: 72,
    upvalue_bytes: 8,
    doubts_jumps: false,
    iterator: None,
};

/// Formats by minor version, from 5.1 on.
static CODES: [Code; 4] = [
    Code {
        does: &[
            (0, 0, Copies),
            (1, 2, Sets),
            (3, 3, SetsTo),
            (4, 4, GetsUpvalue),
            (5, 5, GetsGlobal),
            (6, 6, GetsField),
            (10, 10, Sets),
            (11, 11, GetsMethod),
            (12, 21, Sets),
            (22, 22, Jumps),
            (26, 27, Sets),
            (28, 29, Calls),
            (31, 32, Sets),
            (33, 33, Iterates),
            (36, 37, Sets),
        ],
        ..OLD
    },
    Code {
        does: &[
            (0, 0, Copies),
            (1, 3, Sets),
            (4, 4, SetsSome),
            (5, 5, GetsUpvalue),
            (6, 7, GetsField),
            (11, 11, Sets),
            (12, 12, GetsMethod),
            (13, 22, Sets),
            (23, 23, Jumps),
            (27, 28, Sets),
            (29, 30, Calls),
            (32, 33, Sets),
            (34, 34, Iterates),
            (35, 35, Sets),
            (37, 38, Sets),
        ],
        constant_count: 84,
        variable_count: 100,
        upvalue_count: 80,
        upvalue_bytes: 16,
        doubts_jumps: true,
        iterator: Some("for iterator"),
        ..OLD
    },
    Code {
        does: &[
            (0, 0, Copies),
            (1, 3, Sets),
            (4, 4, SetsSome),
            (5, 5, GetsUpvalue),
            (6, 7, GetsField),
            (11, 11, Sets),
            (12, 12, GetsMethod),
            (13, 29, Sets),
            (30, 30, Jumps),
            (35, 35, Sets),
            (36, 37, Calls),
            (39, 40, Sets),
            (41, 41, Iterates),
            (42, 42, Sets),
            (44, 45, Sets),
        ],
        constants: 48,
        constant_count: 20,
        variables: 80,
        variable_count: 36,
        upvalues: 88,
        upvalue_count: 16,
        upvalue_bytes: 16,
        doubts_jumps: true,
        iterator: Some("for iterator"),
        ..OLD
    },
    Code {
        does: &[
            (0, 0, Copies),
            (1, 7, Sets),
            (8, 8, SetsSome),
            (9, 9, GetsUpvalue),
            (11, 11, GetsConstantField),
            (12, 12, GetsRegisterField),
            (13, 13, Sets),
            (14, 14, GetsConstantField),
            (19, 19, Sets),
            (20, 20, GetsMethod),
            (21, 45, Sets),
            (49, 53, Sets),
            (56, 56, Jumps),
            (67, 67, Sets),
            (68, 69, Calls),
            (73, 74, Sets),
            (76, 76, Iterates),
            (77, 77, Sets),
            (79, 81, Sets),
        ],
        a: (7, 8),
        b: (16, 8),
        c: (24, 8),
        long: (15, 17),
        jump: (7, 25, (1 << 24) - 1),
        constant: 1 << 15,
        constant_is_in_c: false,
        constants: 56,
        constant_count: 20,
        variables: 104,
        variable_count: 36,
        upvalues: 80,
        upvalue_count: 16,
        upvalue_bytes: 16,
        doubts_jumps: true,
        iterator: Some("for iterator"),
    },
];

/// The calling code.
struct Caller<'r> {
    readable: &'r mut Readable,
    layout: &'static Layout,
    code: &'static Code,
    prototype: usize,
    instructions: usize,
}

/// Writes the name of a function that the instruction before `at` of `prototype` has called.
/// Returns `None` if it has no name.
pub(super) fn name(
    readable: &mut Readable,
    layout: &'static Layout,
    (prototype, at): (usize, usize),
    out: &mut Text<'_>,
) -> Option<()> {
    let instructions = readable.word(prototype.wrapping_add(layout.code))?;
    let count = readable.half(prototype.wrapping_add(layout.code_count))? as usize;
    let number = (at.checked_sub(instructions)? / INSTRUCTION_BYTES).checked_sub(1)?;
    if number >= count || number > LOOKED_AT_MAX {
        return None;
    }
    let code = CODES.get(layout.minor.checked_sub(1)?)?;
    let mut caller = Caller { readable, layout, code, prototype, instructions };
    let call = caller.instruction(number)?;
    match caller.does(call) {
        Calls => caller.variable(number, part(call, code.a), out),
        Iterates => match code.iterator {
            Some(name) => {
                out.push_all(name);
                Some(())
            }
            None => caller.variable(number, part(call, code.a), out),
        },
        _ => None,
    }
}

fn part(instruction: u32, (begin, bits): (u32, u32)) -> u32 {
    instruction >> begin & (1_u32 << bits).wrapping_sub(1)
}

impl Caller<'_> {
    fn instruction(&mut self, number: usize) -> Option<u32> {
        self.readable.half(self.instructions.checked_add(number.checked_mul(INSTRUCTION_BYTES)?)?)
    }

    fn does(&self, instruction: u32) -> Does {
        let operation = (instruction & self.layout.operation_mask) as u8;
        let rows = self.code.does.iter();
        rows.copied()
            .find(|&(first, last, _)| (first..=last).contains(&operation))
            .map_or(Other, |(_, _, does)| does)
    }

    fn field(&mut self, offset: usize) -> Option<usize> {
        self.readable.word(self.prototype.wrapping_add(offset))
    }

    fn count(&mut self, offset: usize) -> Option<usize> {
        Some(self.readable.half(self.prototype.wrapping_add(offset))? as usize)
    }

    /// Writes the name of the value that a register holds at an instruction.
    fn variable(&mut self, number: usize, register: u32, out: &mut Text<'_>) -> Option<()> {
        let (mut number, mut register) = (number, register);
        for _ in 0..COPIES_MAX {
            if self.local(number, register, out).is_some() {
                return Some(());
            }
            number = self.last_set(number, register)?;
            let instruction = self.instruction(number)?;
            let code = self.code;
            let [b, c] = [code.b, code.c].map(|place| part(instruction, place));
            let is_constant =
                if code.constant_is_in_c { c & code.constant != 0 } else { instruction & code.constant != 0 };
            let constant = if code.constant_is_in_c { c & !code.constant } else { c };
            return match self.does(instruction) {
                Copies if b < part(instruction, code.a) => {
                    register = b;
                    continue;
                }
                GetsUpvalue => self.upvalue(b, out),
                GetsGlobal => self.constant(part(instruction, code.long), out),
                GetsConstantField => self.constant(c, out),
                GetsField | GetsMethod if is_constant => self.constant(constant, out),
                _ => None,
            };
        }
        None
    }

    /// Writes the name of the variable that lives in a register at an instruction.
    fn local(&mut self, number: usize, register: u32, out: &mut Text<'_>) -> Option<()> {
        let variables = self.field(self.code.variables)?;
        let mut left = register;
        for index in 0..self.count(self.code.variable_count)?.min(LOOKED_AT_MAX) {
            let at = variables.checked_add(index.wrapping_mul(VARIABLE_BYTES))?;
            let (first, end) =
                (self.readable.half(at.wrapping_add(8))?, self.readable.half(at.wrapping_add(12))?);
            if first as usize > number {
                break;
            }
            if number < end as usize {
                match left.checked_sub(1) {
                    Some(less) => left = less,
                    None => {
                        let name = self.readable.word(at)?;
                        return self.text(name, out);
                    }
                }
            }
        }
        None
    }

    /// Returns the last instruction before `number` that has set a register.
    fn last_set(&mut self, number: usize, register: u32) -> Option<usize> {
        let (mut last, mut target) = (None, 0_usize);
        let mut at = 0_usize;
        while at < number {
            let instruction = self.instruction(at)?;
            let [a, b] = [self.code.a, self.code.b].map(|place| part(instruction, place));
            let sets = match self.does(instruction) {
                Other => false,
                SetsTo => a <= register && register <= b,
                SetsSome => a <= register && register <= a.wrapping_add(b),
                Calls => register >= a,
                Iterates => register >= a.wrapping_add(2),
                // The instructions that follow list the variables that the function shares.
                Sets if !self.code.doubts_jumps && self.is_closure(instruction) => {
                    let shared = self.shared_count(instruction)?;
                    if register == a {
                        last = Some(at);
                    }
                    at = at.wrapping_add(shared);
                    false
                }
                GetsMethod if !self.code.doubts_jumps => register == a || register == a.wrapping_add(1),
                Jumps => {
                    let (begin, bits, zero) = self.code.jump;
                    let distance = i64::from(part(instruction, (begin, bits))).wrapping_sub(zero);
                    let to = (at as i64).wrapping_add(1).wrapping_add(distance) as usize;
                    if to > at && to <= number {
                        if self.code.doubts_jumps {
                            target = target.max(to);
                        } else {
                            at = to;
                            continue;
                        }
                    }
                    false
                }
                _ => register == a,
            };
            if sets {
                last = if self.code.doubts_jumps && at < target { None } else { Some(at) };
            }
            at = at.wrapping_add(1);
        }
        last
    }

    fn is_closure(&self, instruction: u32) -> bool {
        instruction & self.layout.operation_mask == CLOSURE
    }

    /// Returns the number of variables that a new function shares (5.1).
    fn shared_count(&mut self, closure: u32) -> Option<usize> {
        let place = (part(closure, self.code.long) as usize).wrapping_mul(8);
        let inner = self.field(PROTOTYPES_AT)?.checked_add(place)?;
        let inner = self.readable.word(inner)?;
        let count = self.readable.bytes(inner.checked_add(SHARED_COUNT_AT)?, 1)?;
        count.first().map(|&count| usize::from(count))
    }

    fn constant(&mut self, number: u32, out: &mut Text<'_>) -> Option<()> {
        if number as usize >= self.count(self.code.constant_count)? {
            return None;
        }
        let at = self.field(self.code.constants)?.checked_add((number as usize).wrapping_mul(VALUE_BYTES))?;
        if self.readable.half(at.wrapping_add(KIND_AT))? & KIND_BITS != TEXT {
            return None;
        }
        let text = self.readable.word(at)?;
        self.text(text, out)
    }

    fn upvalue(&mut self, number: u32, out: &mut Text<'_>) -> Option<()> {
        if number as usize >= self.count(self.code.upvalue_count)? {
            return None;
        }
        let place = (number as usize).wrapping_mul(self.code.upvalue_bytes);
        let at = self.field(self.code.upvalues)?.checked_add(place)?;
        let name = self.readable.word(at)?;
        self.text(name, out)
    }

    /// Writes a text of Lua up to its first zero.
    fn text(&mut self, text: usize, out: &mut Text<'_>) -> Option<()> {
        let first = text.checked_add(self.layout.text).filter(|_| text != 0)?;
        for away in 0..NAME_BYTES_MAX {
            match self.readable.bytes(first.wrapping_add(away), 1)? {
                [0] if away == 0 => return None,
                [0] => break,
                byte => out.push_bytes(byte),
            }
        }
        Some(())
    }
}
