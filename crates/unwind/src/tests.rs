//! Tests with tables made byte by byte.

use heapr_known::machine::{Columns, HERE};

use crate::{FrameRegisters, UnwindIndex, UnwindRule, covered_ranges};

/// Addresses of the index, the tables and the function.
const INDEX: u64 = 0x1000;
const TABLES: u64 = 0x2000;
const FUNCTION: u64 = 0x5000;
const FUNCTION_BYTES: u32 = 0x40;
/// Size in bytes of the common entry.
const CIE_BYTES: usize = 24;

/// Tables of a function: a common entry with this augmentation, and an entry with these
/// instructions.
fn tables(augmentation: &[u8], instructions: &[u8]) -> Vec<u8> {
    let columns = &HERE.columns;
    let mut common = vec![0, 0, 0, 0, 1];
    common.extend(augmentation);
    // End of the text, alignments 1 and -8, the column of the return address.
    common.extend([0, 1, 0x78, columns.return_address as u8]);
    // Length of the augmentation: the encoding of addresses, relative and of 4 bytes.
    common.extend([1, 0x1b]);
    // The caller's stack pointer is this one's plus 8, and the return address lies below it.
    common.extend([0x0c, columns.stack_pointer as u8, 8, 0x80 | columns.return_address as u8, 1]);
    common.resize(CIE_BYTES - 4, 0);
    let mut bytes = (common.len() as u32).to_le_bytes().to_vec();
    bytes.extend(common);
    let mut entry = (CIE_BYTES as u32 + 4).to_le_bytes().to_vec();
    let place = TABLES + CIE_BYTES as u64 + 8;
    entry.extend((FUNCTION.wrapping_sub(place) as u32).to_le_bytes());
    entry.extend(FUNCTION_BYTES.to_le_bytes());
    entry.push(0);
    entry.extend(instructions);
    bytes.extend((entry.len() as u32).to_le_bytes());
    bytes.extend(entry);
    bytes.extend([0; 4]);
    bytes
}

/// Index of [`tables`].
fn index() -> Vec<u8> {
    let mut bytes = vec![1, 0x1b, 0x03, 0x3b];
    bytes.extend((TABLES.wrapping_sub(INDEX + 4) as u32).to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend((FUNCTION.wrapping_sub(INDEX) as u32).to_le_bytes());
    bytes.extend(((TABLES + CIE_BYTES as u64).wrapping_sub(INDEX) as u32).to_le_bytes());
    bytes
}

fn rule(index: &[u8], tables: &[u8], pc: u64) -> Option<UnwindRule> {
    rule_with(&HERE.columns, index, tables, pc)
}

fn rule_with(columns: &Columns, index: &[u8], tables: &[u8], pc: u64) -> Option<UnwindRule> {
    let bytes_at = |address: u64, count: usize| {
        let start = usize::try_from(address.checked_sub(TABLES)?).ok()?;
        Some(tables.get(start..start.checked_add(count)?)?.to_vec())
    };
    let entry = UnwindIndex { bytes: index, address: INDEX }.entry_address(pc)?;
    UnwindRule::of_entry(columns, &bytes_at, entry, pc)
}

/// Registers with the stack pointer `sp`; the others hold their own numbers.
fn registers(sp: u64) -> FrameRegisters {
    let mut registers: FrameRegisters = (0..HERE.columns.thread_indices.len() as u64).map(Some).collect();
    registers[HERE.columns.stack_pointer] = Some(sp);
    registers
}

/// A stack whose words hold their own addresses.
fn own_address(address: u64) -> Option<u64> {
    Some(address)
}

#[test]
fn a_mark_of_signed_return_addresses_is_read_where_they_may_be_signed() {
    // `DW_CFA_AARCH64_negate_ra_state`
    let tables = tables(b"zR", &[0x2d]);
    let read = |columns: &Columns| rule_with(columns, &index(), &tables, FUNCTION + 3).is_some();
    assert!(read(&Columns { may_sign_return_addresses: true, ..HERE.columns }));
    assert!(!read(&Columns { may_sign_return_addresses: false, ..HERE.columns }));
}

#[test]
fn a_rule_leads_to_the_caller() {
    let columns = &HERE.columns;
    let tables = tables(b"zR", &[]);
    let found = rule(&index(), &tables, FUNCTION + 3).unwrap();
    assert!(!found.is_of_signal);
    let caller = found.caller(columns, &registers(0x8000), None, &own_address).unwrap();
    assert_eq!(caller[columns.stack_pointer], Some(0x8008));
    assert_eq!(caller[columns.return_address], Some(0x8000));
    assert_eq!(caller.len(), columns.thread_indices.len());
    for (number, &value) in caller.iter().enumerate() {
        if [columns.stack_pointer, columns.return_address].contains(&number) {
            continue;
        }
        let kept = columns.preserved.contains(&number).then_some(number as u64);
        assert_eq!(value, kept, "register {number}");
    }
    assert!(found.caller(columns, &registers(0x8000), None, &|_| None).is_none(), "unreadable stack");
    assert!(found.caller(columns, &[], None, &own_address).is_none(), "no registers");
    for pc in [0, FUNCTION - 1, FUNCTION + u64::from(FUNCTION_BYTES), u64::MAX] {
        assert!(rule(&index(), &tables, pc).is_none(), "{pc:#x}");
    }
    assert_eq!(covered_ranges(&tables, TABLES, 10), [(FUNCTION, FUNCTION + u64::from(FUNCTION_BYTES))]);
    assert!(covered_ranges(&tables, TABLES, 0).is_empty());
}

#[test]
fn expressions_lost_registers_and_signals_are_told() {
    let columns = &HERE.columns;
    let (stack, back) = (columns.stack_pointer as u8, columns.return_address as u8);
    // The caller's stack pointer is a word of the stack, 0x10 above: DW_OP_breg, DW_OP_deref.
    let by_expression = tables(b"zRS", &[0x0f, 3, 0x70 + stack, 0x10, 0x06]);
    let found = rule(&index(), &by_expression, FUNCTION).unwrap();
    assert!(found.is_of_signal);
    let caller = found.caller(columns, &registers(0x8000), None, &own_address).unwrap();
    assert_eq!(caller[columns.stack_pointer], Some(0x8010));
    // A lost return address: the thread began here.
    let outermost = rule(&index(), &tables(b"zR", &[0x07, back]), FUNCTION).unwrap();
    let caller = outermost.caller(columns, &registers(0x8000), None, &own_address).unwrap();
    assert_eq!(caller[columns.return_address], None);
    // An expression that jumps back to itself ends.
    let endless = rule(&index(), &tables(b"zR", &[0x0f, 3, 0x2f, 0xfd, 0xff]), FUNCTION).unwrap();
    assert!(endless.caller(columns, &registers(0x8000), None, &own_address).is_none());
}

#[test]
fn a_return_address_in_its_register_is_taken_where_the_table_has_none() {
    let columns = &HERE.columns;
    let back = columns.return_address as u8;
    let link = Some(0x1234);
    // DW_CFA_same_value
    let leaf = rule(&index(), &tables(b"zR", &[0x08, back]), FUNCTION).unwrap();
    assert!(leaf.keeps_return_address(columns));
    let caller = leaf.caller(columns, &registers(0x8000), link, &own_address).unwrap();
    assert_eq!(caller[columns.return_address], link);
    let stored = rule(&index(), &tables(b"zR", &[]), FUNCTION).unwrap();
    assert!(!stored.keeps_return_address(columns));
    let caller = stored.caller(columns, &registers(0x8000), link, &own_address).unwrap();
    assert_eq!(caller[columns.return_address], Some(0x8000));
}

/// Cut and changed tables give some rule or none.
#[test]
fn hostile_tables_cause_no_panic() {
    let (index, tables) = (index(), tables(b"zR", &[0x0f, 3, 0x77, 0x10, 0x06]));
    let ask = |index: &[u8], tables: &[u8]| {
        let _ = covered_ranges(tables, TABLES, 100);
        if let Some(rule) = rule(index, tables, FUNCTION) {
            let _ = rule.caller(&HERE.columns, &registers(0x8000), None, &own_address);
        }
    };
    for bytes in 0..index.len() {
        ask(&index[..bytes], &tables);
    }
    for bytes in 0..tables.len() {
        ask(&index, &tables[..bytes]);
    }
    for value in [0, 1, 0x7f, 0x80, 0xff] {
        for at in 0..index.len() {
            let mut changed = index.clone();
            changed[at] = value;
            ask(&changed, &tables);
        }
        for at in 0..tables.len() {
            let mut changed = tables.clone();
            changed[at] = value;
            ask(&index, &changed);
        }
    }
}
