//! Rows of V8's format of heap snapshots, for heaps that are not V8's.

use std::io::{self, Write};

use crate::format::NODE_FIELDS;

/// Index of the kind of stores among the kinds in the header.
pub const ARRAY: u32 = 1;
/// Index of the string kind among the kinds in the header.
pub const STRING: u32 = 2;
/// Index of the kind of objects.
pub const OBJECT: u32 = 3;
/// Index of the kind of code.
pub const CODE: u32 = 4;
/// Index of the kind of functions.
pub const CLOSURE: u32 = 5;
/// Index of the kind of native memory.
pub const NATIVE: u32 = 8;
/// Index of the kind of roots.
pub const SYNTHETIC: u32 = 9;
/// Index of the kind of variables among the kinds of edges.
pub const CONTEXT: u32 = 0;
/// Index of the kind of items.
pub const ELEMENT: u32 = 1;
/// Index of the kind of attributes.
pub const PROPERTY: u32 = 2;
/// Index of the kind of the runtime's own fields.
pub const INTERNAL: u32 = 3;
/// Index of the kind of the root's edges to what the program owns.
pub const SHORTCUT: u32 = 5;
/// Index of the kind of references that hold nothing.
pub const WEAK: u32 = 6;
/// Largest number of digits of a number.
const DIGITS_MAX: usize = 20;
/// Largest size in bytes of a row: eight numbers and the characters around them.
const ROW_BYTES: usize = 8 * (DIGITS_MAX + 1) + 2;

/// A row under work. Files have millions of rows, so that they are not formatted by `write!`.
struct Row {
    bytes: [u8; ROW_BYTES],
    length: usize,
}

impl Row {
    fn new(is_first: bool) -> Self {
        let mut row = Self { bytes: [0; ROW_BYTES], length: 0 };
        if !is_first {
            row.push(b'\n');
            row.push(b',');
        }
        row
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0; DIGITS_MAX];
        let mut first = DIGITS_MAX;
        loop {
            first -= 1;
            digits[first] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        let count = DIGITS_MAX - first;
        self.bytes[self.length..self.length + count].copy_from_slice(&digits[first..]);
        self.length += count;
    }

    fn numbers(&mut self, values: &[u64]) {
        for (place, &value) in values.iter().enumerate() {
            if place > 0 {
                self.push(b',');
            }
            self.number(value);
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.bytes[..self.length])
    }
}

/// Writes a node: kind, name, id, self size, number of edges.
///
/// # Errors
/// Those of `out`.
pub fn node(out: &mut impl Write, is_first: bool, row: [u64; 5]) -> io::Result<()> {
    traced_node(out, is_first, row, 0)
}

/// Writes a node with the id of its stack in the allocation trace; 0 without one.
///
/// # Errors
/// Those of `out`.
pub fn traced_node(out: &mut impl Write, is_first: bool, row: [u64; 5], stack_id: u64) -> io::Result<()> {
    let [kind, name, id, self_bytes, edge_count] = row;
    let mut row = Row::new(is_first);
    row.numbers(&[kind, name, id, self_bytes, edge_count, stack_id, 0]);
    row.write(out)
}

/// Writes an edge: kind, name, number of the target.
///
/// # Errors
/// Those of `out`.
pub fn edge(out: &mut impl Write, is_first: bool, [kind, name, target]: [u64; 3]) -> io::Result<()> {
    let mut row = Row::new(is_first);
    row.numbers(&[kind, name, target * NODE_FIELDS]);
    row.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_digits_of_their_numbers() {
        let mut out = Vec::new();
        node(&mut out, true, [3, 0, u64::MAX, 10, u64::MAX]).unwrap();
        node(&mut out, false, [u64::MAX; 5]).unwrap();
        edge(&mut out, false, [1, 90, 12]).unwrap();
        let most = u64::MAX;
        let expected = format!(
            "3,0,{most},10,{most},0,0\n,{most},{most},{most},{most},{most},0,0\n,1,90,{}",
            12 * NODE_FIELDS
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
