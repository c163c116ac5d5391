//! DWARF expressions, evaluated by gimli and by the agent.

use gimli::{EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location, Value};
use proptest::prelude::*;

use super::invented_machine::Machine;
use super::made_tables::{Shape, Tables, one_function};
use crate::arch::columns::{RETURN_ADDRESS, STACK_POINTER};
use crate::unwind::full_unwind::{FullStep, Registers};

/// Returns the caller's stack pointer if the expression is the CFA; `None` if it cannot be
/// evaluated.
fn ours(code: &[u8]) -> Option<u64> {
    let range = [0x1000_u64.to_le_bytes(), 0x100_u64.to_le_bytes()].concat();
    // DW_CFA_def_cfa_expression, length in two bytes of LEB128.
    let mut instructions = vec![0x0f, code.len() as u8 & 0x7f | 0x80, (code.len() >> 7) as u8];
    instructions.extend(code);
    let shape = Shape {
        pointer_encoding: 0,
        range: &range,
        augmentation: b"zR",
        instructions: &instructions,
        tail: &[],
    };
    let tables = Tables::new(&one_function(&shape));
    let mut registers = Machine::new(3).registers;
    registers[RETURN_ADDRESS] = 0x1001;
    let mut full = Registers::of(registers, false);
    let outcome = full.step(Some(&tables.hdr()), &mut |address| Some(Machine::read(address as u64) as usize));
    (outcome == FullStep::Caller).then(|| full.get(STACK_POINTER)).flatten()
}

fn gimlis(code: &[u8]) -> Option<u64> {
    let mut registers = Machine::new(3).registers;
    registers[RETURN_ADDRESS] = 0x1001;
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation = Evaluation::new(EndianSlice::new(code, LittleEndian), encoding);
    evaluation.set_max_iterations(1000);
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = *registers.get(usize::from(register.0))?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let bits = u32::from(size) * 8;
                let word = Machine::read(address);
                let value = if bits == 64 { word } else { word & ((1 << bits) - 1) };
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            _ => None,
        },
        _ => None,
    }
}

/// Generates one operation with its operands.
fn operation() -> impl Strategy<Value = Vec<u8>> {
    let with = |code: u8, bytes: usize| {
        proptest::collection::vec(any::<u8>(), bytes)
            .prop_map(move |operands| [vec![code], operands].concat())
    };
    prop_oneof![
        // Literals, registers with offset, and constants of every size.
        4 => (0x30_u8..0x50).prop_map(|code| vec![code]),
        2 => (0x70_u8..0x81, 0_u8..0x80).prop_map(|(code, offset)| vec![code, offset]),
        1 => (0_u8..17, 0_u8..0x80).prop_map(|(register, offset)| vec![0x92, register, offset]),
        1 => prop_oneof![with(0x08, 1), with(0x09, 1), with(0x0a, 2), with(0x0b, 2)],
        1 => prop_oneof![with(0x0c, 4), with(0x0d, 4), with(0x0e, 8), with(0x0f, 8), with(0x03, 8)],
        1 => (0x10_u8..0x12, 0x80_u8.., 0_u8..0x80).prop_map(|(code, low, high)| vec![code, low, high]),
        // Arithmetic, comparisons, the stack, memory.
        6 => (0x19_u8..0x23).prop_map(|code| vec![code]),
        1 => (0_u8..0x80).prop_map(|amount| vec![0x23, amount]),
        4 => (0x24_u8..0x28).prop_map(|code| vec![code]),
        4 => (0x29_u8..0x2f).prop_map(|code| vec![code]),
        3 => prop_oneof![Just(0x12_u8), Just(0x13), Just(0x14), Just(0x16), Just(0x17)].prop_map(|code| vec![code]),
        1 => (0_u8..6).prop_map(|depth| vec![0x15, depth]),
        1 => Just(vec![0x06_u8]),
        1 => (0_u32..4).prop_map(|power| vec![0x94, 1 << power]),
        1 => Just(vec![0x96_u8]),
    ]
}

/// Generates an operation, or a branch or jump over one.
fn step() -> impl Strategy<Value = Vec<u8>> {
    let over = |code: u8| {
        operation().prop_map(move |operation| [vec![code, operation.len() as u8, 0], operation].concat())
    };
    prop_oneof![10 => operation(), 1 => over(0x28), 1 => over(0x2f)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn values_are_what_gimli_computes(
        first in proptest::collection::vec(0x30_u8..0x50, 1..5),
        operations in proptest::collection::vec(step(), 0..12),
    ) {
        let code = [first, operations.concat()].concat();
        if let Some(expected) = gimlis(&code) {
            prop_assert_eq!(ours(&code), Some(expected), "{:x?}", code);
        }
    }
}

#[test]
fn a_loop_ends_and_one_without_end_is_given_up() {
    // lit0; lit1; plus; dup; lit20; lt; bra -7.
    let counts = [0x30, 0x31, 0x22, 0x12, 0x44, 0x2d, 0x28, 0xf8, 0xff];
    assert_eq!(ours(&counts), Some(20));
    assert_eq!(gimlis(&counts), Some(20));
    // lit0; skip -3.
    assert_eq!(ours(&[0x30, 0x2f, 0xfd, 0xff]), None);
}

#[test]
fn a_jump_out_of_the_expression_is_refused() {
    assert_eq!(ours(&[0x30, 0x2f, 0x10, 0x00]), None);
    assert_eq!(ours(&[0x30, 0x2f, 0xf0, 0xff]), None);
}
