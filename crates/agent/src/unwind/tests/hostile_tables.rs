//! Invalid tables give some rule or no rule, in bounded time, and no byte after their end is read.

use proptest::prelude::*;

use super::file_in_memory::FileInMemory;
use super::invented_machine::Machine;
use super::made_tables::{Shape, Tables, one_function};
use crate::arch::columns::RETURN_ADDRESS;
use crate::unwind::full_unwind::Registers;
use crate::unwind::rule_for;

/// Looks an address up by both methods.
fn look_up(tables: &Tables, lookup_avma: usize) {
    let machine = Machine::new(lookup_avma as u64);
    let mut read = |address: usize| (address & 3 != 0).then(|| Machine::read(address as u64) as usize);
    let hdr = tables.hdr();
    let _ = rule_for(&hdr, lookup_avma).step(lookup_avma, lookup_avma, 16, false, &mut read);
    let mut registers = machine.registers;
    registers[RETURN_ADDRESS] = (lookup_avma as u64).wrapping_add(1);
    let _ = Registers::of(registers, false).step(Some(&hdr), &mut read);
}

/// Generates call frame instructions, so that most inputs are executed.
fn instructions() -> impl Strategy<Value = Vec<u8>> {
    let instruction = prop_oneof![
        (0_u8..0x18, proptest::collection::vec(0_u8..0x20, 0..3)),
        (0x2d_u8..0x30, proptest::collection::vec(any::<u8>(), 0..3)),
        (0x40_u8..0x50, Just(vec![])),
        (0x80_u8..=0xff, proptest::collection::vec(any::<u8>(), 0..2)),
        // A CFA or a register by expression.
        (0x0f_u8..0x10, proptest::collection::vec(any::<u8>(), 1..20).prop_map(block)),
        (
            0x10_u8..0x11,
            proptest::collection::vec(any::<u8>(), 1..20).prop_map(|code| {
                let mut operands = vec![code[0] % 18];
                operands.extend(block(code));
                operands
            })
        ),
    ];
    proptest::collection::vec(instruction, 0..40).prop_map(|instructions| {
        instructions.into_iter().flat_map(|(code, operands)| [vec![code], operands].concat()).collect()
    })
}

fn block(code: Vec<u8>) -> Vec<u8> {
    [vec![code.len() as u8], code].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_any_kind_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        is_indexed in any::<bool>(),
        offset in any::<usize>(),
    ) {
        let mut bytes = bytes;
        // To get past the first checks.
        let head: [u8; 8] =
            if is_indexed { [1, 0x1b, 0x03, 0x3b, 8, 0, 0, 0] } else { [1, 0x1b, 0xff, 0xff, 4, 0, 0, 0] };
        bytes.splice(0..bytes.len().min(8), head);
        let tables = Tables::new(&bytes);
        look_up(&tables, offset);
        look_up(&tables, tables.start.wrapping_add(offset % 1024));
    }

    #[test]
    fn instructions_of_any_kind_are_survived(instructions in instructions(), offset in 0_usize..0x100) {
        let range = [0x1000_u64.to_le_bytes(), 0x100_u64.to_le_bytes()].concat();
        let shape = Shape {
            pointer_encoding: 0,
            range: &range,
            augmentation: b"zR",
            instructions: &instructions,
            tail: &[],
        };
        look_up(&Tables::new(&one_function(&shape)), 0x1000 + offset);
    }
}

#[test]
fn damaged_tables_of_a_real_program_are_survived() {
    let file = FileInMemory::load(&std::env::current_exe().unwrap()).unwrap();
    let whole = file.bytes_from(file.hdr_avma);
    // Header, index, and the frames after them.
    let mut bytes = whole[..whole.len().min(1 << 19)].to_vec();
    let index_count = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let mut state = 7_u64;
    let mut random = || {
        state = super::invented_machine::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        state as usize
    };
    for round in 0..300 {
        for _ in 0..200 {
            let place = 12 + random() % (bytes.len() - 12);
            bytes[place] = random() as u8;
        }
        let cut = if round % 3 == 0 { random() % bytes.len() } else { bytes.len() };
        let tables = Tables::new(&bytes[..cut]);
        for _ in 0..100 {
            let entry = 12 + random() % index_count * 8;
            let first = i32::from_le_bytes(bytes[entry..entry + 4].try_into().unwrap());
            look_up(&tables, tables.start.wrapping_add_signed(first as isize).wrapping_add(random() % 64));
        }
    }
}

#[test]
fn a_long_section_of_nonsense_is_walked_in_linear_time() {
    // A hundred thousand FDEs that all name the CIE in front, whose augmentation string does not
    // end.
    let mut bytes = vec![1, 0x1b, 0xff, 0xff, 4, 0, 0, 0];
    bytes.extend([0xff, 0xff, 0xff, 0x00, 0, 0, 0, 0, 1]);
    bytes.resize(8 + 4 + 0x00ff_ffff, b'z');
    for number in 0..100_000_u32 {
        bytes.extend(4_u32.to_le_bytes());
        bytes.extend((4 + 0x00ff_ffff + 4 + number * 8).to_le_bytes());
    }
    look_up(&Tables::new(&bytes), 0x1000);
}
