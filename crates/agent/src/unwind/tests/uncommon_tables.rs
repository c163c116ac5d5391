//! Elements of unwind tables that are allowed but rare.

use std::path::Path;

use super::file_in_memory::FileInMemory;
use super::invented_machine::Machine;
use super::made_tables::{RANGE_AT, Shape, Tables, one_function};
use crate::arch::columns::{COLUMNS, FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};
use crate::arch::{Rule, Step};
use crate::unwind::full_unwind::{FullStep, Registers};
use crate::unwind::rule_for;

const FUNCTION: u64 = 0x1234;
const FUNCTION_BYTES: u64 = 0x100;

/// Makes tables for a function at `FUNCTION` with these instructions.
fn with_instructions(instructions: &[u8]) -> Tables {
    let range = [FUNCTION.to_le_bytes(), FUNCTION_BYTES.to_le_bytes()].concat();
    let shape = Shape { pointer_encoding: 0, range: &range, augmentation: b"zR", instructions, tail: &[] };
    Tables::new(&one_function(&shape))
}

/// Returns the caller's (pc, sp, bp) by rule, on the invented machine.
fn stepped(tables: &Tables, lookup_avma: u64) -> Step {
    let machine = Machine::new(1);
    let rule = rule_for(&tables.hdr(), lookup_avma as usize);
    let (sp, bp) = (machine.registers[STACK_POINTER] as usize, machine.registers[FRAME_POINTER] as usize);
    rule.step(lookup_avma as usize + 1, sp, bp, false, |address| Some(Machine::read(address as u64) as usize))
}

/// Returns the caller's registers by the full step.
fn stepped_in_full(tables: &Tables, lookup_avma: u64) -> Option<[Option<u64>; COLUMNS]> {
    let mut registers = Machine::new(1).registers;
    registers[RETURN_ADDRESS] = lookup_avma + 1;
    let mut full = Registers::of(registers, false);
    let outcome = full.step(Some(&tables.hdr()), &mut |address| Some(Machine::read(address as u64) as usize));
    (outcome == FullStep::Caller).then(|| std::array::from_fn(|register| full.get(register)))
}

fn caller(cfa: u64, bp: u64) -> Step {
    Step::Caller { pc: Machine::read(cfa - 8) as usize, sp: cfa as usize, bp: bp as usize }
}

#[test]
fn every_encoding_of_addresses_is_read() {
    const CALL_FRAME: u64 = 8;
    let machine = Machine::new(1);
    let expected = caller(machine.registers[STACK_POINTER] + CALL_FRAME, machine.registers[FRAME_POINTER]);
    let number = |bytes: usize, value: u64| value.to_le_bytes()[..bytes].to_vec();
    // Format, bytes of a number; 0x1234 and 0x100 as LEB128.
    let formats: [(u8, Vec<u8>, Vec<u8>); 9] = [
        (0x00, number(8, FUNCTION), number(8, FUNCTION_BYTES)),
        (0x01, vec![0xb4, 0x24], vec![0x80, 0x02]),
        (0x02, number(2, FUNCTION), number(2, FUNCTION_BYTES)),
        (0x03, number(4, FUNCTION), number(4, FUNCTION_BYTES)),
        (0x04, number(8, FUNCTION), number(8, FUNCTION_BYTES)),
        (0x09, vec![0xb4, 0x24], vec![0x80, 0x02]),
        (0x0a, number(2, FUNCTION), number(2, FUNCTION_BYTES)),
        (0x0b, number(4, FUNCTION), number(4, FUNCTION_BYTES)),
        (0x0c, number(8, FUNCTION), number(8, FUNCTION_BYTES)),
    ];
    for (format, first, bytes) in formats {
        let range = [first, bytes].concat();
        for base in [0x00, 0x10, 0x30] {
            let shape = Shape {
                pointer_encoding: format | base,
                range: &range,
                augmentation: b"zR",
                instructions: &[],
                tail: &[],
            };
            let tables = Tables::new(&one_function(&shape));
            let origin = match base {
                0x10 => (tables.start + RANGE_AT) as u64,
                0x30 => tables.start as u64,
                _ => 0,
            };
            let first = origin + FUNCTION;
            for (address, is_inside) in
                [(first - 2, false), (first, true), (first + 0xff, true), (first + 0x100, false)]
            {
                let is_found = rule_for(&tables.hdr(), address as usize) != Rule::FRAME_POINTER;
                assert_eq!(is_found, is_inside, "format {format:#x} base {base:#x} at {address:#x}");
            }
            assert_eq!(stepped(&tables, first), expected);
        }
    }
}

#[test]
fn an_indirect_address_is_read_where_it_points() {
    let target = FUNCTION.to_le_bytes();
    let shape = |range: &[u8]| {
        one_function(&Shape {
            pointer_encoding: 0x90,
            range,
            augmentation: b"zR",
            instructions: &[],
            tail: &target,
        })
    };
    let whole = shape(&[0; 16]).len();
    let distance = (whole - 8 - RANGE_AT) as u64;
    let range = [distance.to_le_bytes(), FUNCTION_BYTES.to_le_bytes()].concat();
    let tables = Tables::new(&shape(&range));
    assert_ne!(rule_for(&tables.hdr(), FUNCTION as usize), Rule::FRAME_POINTER);
    assert_eq!(rule_for(&tables.hdr(), FUNCTION as usize - 2), Rule::FRAME_POINTER);
}

#[test]
fn addresses_are_absolute_without_an_augmentation() {
    let range = [FUNCTION.to_le_bytes(), FUNCTION_BYTES.to_le_bytes()].concat();
    let shape =
        Shape { pointer_encoding: 0, range: &range, augmentation: b"", instructions: &[0x0e, 24], tail: &[] };
    let tables = Tables::new(&one_function(&shape));
    let machine = Machine::new(1);
    assert_eq!(
        stepped(&tables, FUNCTION),
        caller(machine.registers[STACK_POINTER] + 24, machine.registers[FRAME_POINTER])
    );
}

#[test]
fn remembered_rows_nest_and_come_back_with_their_cfa() {
    // +16; remember; advance 1; +32; remember; advance 1; +48; restore; advance 1; restore.
    let tables = with_instructions(&[0x0e, 16, 0x0a, 0x41, 0x0e, 32, 0x0a, 0x41, 0x0e, 48, 0x0b, 0x41, 0x0b]);
    let machine = Machine::new(1);
    for (offset, cfa) in [(0, 16), (1, 32), (2, 32), (3, 16)] {
        let expected = caller(machine.registers[STACK_POINTER] + cfa, machine.registers[FRAME_POINTER]);
        assert_eq!(stepped(&tables, FUNCTION + offset), expected, "at offset {offset}");
    }
}

#[test]
fn a_location_may_be_set() {
    let mut instructions = vec![0x0e, 16, 0x01];
    instructions.extend((FUNCTION + 0x20).to_le_bytes());
    instructions.extend([0x0e, 64]);
    let tables = with_instructions(&instructions);
    let machine = Machine::new(1);
    for (offset, cfa) in [(0x1f, 16), (0x20, 64)] {
        let expected = caller(machine.registers[STACK_POINTER] + cfa, machine.registers[FRAME_POINTER]);
        assert_eq!(stepped(&tables, FUNCTION + offset), expected);
    }
}

#[test]
fn registers_may_be_values_and_other_registers() {
    // rbx is CFA + 16 (factored by -8: -2), r12 is in r13, r14 undefined, r15 at CFA + 8 by the GNU
    // instruction.
    let tables = with_instructions(&[0x15, 3, 0x7e, 0x09, 12, 13, 0x07, 14, 0x2f, 15, 1, 0x2e, 32]);
    let machine = Machine::new(1);
    let cfa = machine.registers[STACK_POINTER] + 8;
    let registers = stepped_in_full(&tables, FUNCTION).unwrap();
    assert_eq!(registers[3], Some(cfa + 16));
    assert_eq!(registers[12], Some(machine.registers[13]));
    assert_eq!(registers[14], None);
    assert_eq!(registers[15], Some(Machine::read(cfa + 8)));
    assert_eq!(registers[0], Some(machine.registers[0]));
    assert_eq!(registers[STACK_POINTER], Some(cfa));
}

#[test]
fn a_restored_register_is_as_the_common_instructions_left_it() {
    // Return address at CFA - 16, advance, restored to CFA - 8; rbp saved at CFA - 16, advance,
    // restored to unchanged.
    let tables = with_instructions(&[0x90, 2, 0x86, 2, 0x41, 0xd0, 0xc6]);
    let machine = Machine::new(1);
    let cfa = machine.registers[STACK_POINTER] + 8;
    let registers = stepped_in_full(&tables, FUNCTION).unwrap();
    assert_eq!(registers[RETURN_ADDRESS], Some(Machine::read(cfa - 16)));
    assert_eq!(registers[FRAME_POINTER], Some(Machine::read(cfa - 16)));
    assert!(rule_for(&tables.hdr(), FUNCTION as usize).is_slow(), "no rule has a return address elsewhere");
    assert_eq!(stepped(&tables, FUNCTION + 1), caller(cfa, machine.registers[FRAME_POINTER]));
}

#[test]
fn a_function_entered_by_return_has_no_caller() {
    // As with makecontext: a frame returns to the first instruction of a function, and no call
    // precedes that instruction.
    for instructions in [&[0x07, 16][..], &[]] {
        let tables = with_instructions(instructions);
        assert_eq!(stepped(&tables, FUNCTION - 1), Step::Root);
        assert_ne!(stepped(&tables, FUNCTION - 2), Step::Root);
    }
    assert_eq!(stepped(&with_instructions(&[0x07, 16]), FUNCTION), Step::Root);
}

#[test]
fn a_signal_trampoline_without_tables_is_unwound_as_the_c_librarys() {
    const RETURN_CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    let range = [FUNCTION.to_le_bytes(), FUNCTION_BYTES.to_le_bytes()].concat();
    let shape = Shape {
        pointer_encoding: 0,
        range: &range,
        augmentation: b"zR",
        instructions: &[],
        tail: &RETURN_CODE,
    };
    let tables = Tables::new(&one_function(&shape));
    let lookup_avma = tables.end - RETURN_CODE.len() - 1;
    let rule = rule_for(&tables.hdr(), lookup_avma);
    assert!(rule.is_signal_frame());
    assert!(!rule_for(&tables.hdr(), lookup_avma + 1).is_signal_frame());

    // glibc's trampoline has tables: they must give the same for every register.
    let Some(file) = FileInMemory::load(Path::new("/usr/lib/x86_64-linux-gnu/libc.so.6")) else {
        heapr_testkit::cannot_run_here("no glibc where Debian has it");
        return;
    };
    let Some(described_avma) = file.find_code(&RETURN_CODE) else {
        heapr_testkit::cannot_run_here("glibc has no such trampoline");
        return;
    };
    assert_eq!(rule_for(&file.hdr(), described_avma - 1), rule);
    let caller = |hdr, pc: usize| {
        let mut registers = Machine::new(1).registers;
        registers[RETURN_ADDRESS] = pc as u64;
        let mut full = Registers::of(registers, false);
        let outcome = full.step(Some(hdr), &mut |address| Some(Machine::read(address as u64) as usize));
        assert_eq!((outcome, full.is_exact), (FullStep::Caller, true));
        std::array::from_fn::<_, COLUMNS, _>(|register| full.get(register))
    };
    assert_eq!(caller(&tables.hdr(), lookup_avma + 1), caller(&file.hdr(), described_avma));
}
