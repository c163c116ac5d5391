//! The source line of an instruction, from a code object's line table: arithmetic on its bytes.
//! With any bytes the functions end and return a line or 0.

use crate::languages::python::layout::Lines;

/// Returns the line of the instruction at `offset_bytes`, from 1; 0 if it has no line.
pub(crate) fn line(kind: Lines, table: &[u8], first_line: u32, offset_bytes: usize) -> u32 {
    let line = match kind {
        Lines::Increments => by_increments(table, first_line, offset_bytes),
        Lines::Ranges => by_ranges(table, first_line, offset_bytes),
        Lines::Locations => by_locations(table, first_line, offset_bytes),
    };
    line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
}

/// Decodes pairs of increments: bytes of code, and lines to add after them.
fn by_increments(table: &[u8], first_line: u32, offset_bytes: usize) -> Option<i64> {
    let (mut address, mut line) = (0_usize, i64::from(first_line));
    for pair in table.chunks_exact(2) {
        let &[bytes, lines] = pair else { break };
        address = address.wrapping_add(usize::from(bytes));
        if address > offset_bytes {
            break;
        }
        line = line.wrapping_add(i64::from(lines.cast_signed()));
    }
    Some(line)
}

/// Decodes pairs of bytes of code and lines to add before them; -128: the code has no line.
fn by_ranges(table: &[u8], first_line: u32, offset_bytes: usize) -> Option<i64> {
    let (mut end, mut line) = (0_usize, i64::from(first_line));
    for pair in table.chunks_exact(2) {
        let &[bytes, lines] = pair else { break };
        end = end.wrapping_add(usize::from(bytes));
        let lines = lines.cast_signed();
        if lines != i8::MIN {
            line = line.wrapping_add(i64::from(lines));
        }
        if offset_bytes < end {
            return (lines != i8::MIN).then_some(line);
        }
    }
    None
}

/// Decodes entries whose first byte has the highest bit: four bits of kind, three of length.
fn by_locations(table: &[u8], first_line: u32, offset_bytes: usize) -> Option<i64> {
    let (mut end, mut line) = (0_usize, i64::from(first_line));
    let mut rest = table;
    while let Some((&first, after)) = rest.split_first() {
        end = end.wrapping_add((usize::from(first & 7).wrapping_add(1)).wrapping_mul(2));
        let kind = first >> 3 & 15;
        line = line.wrapping_add(match kind {
            10..=12 => i64::from(kind).wrapping_sub(10),
            13 | 14 => signed(after),
            _ => 0,
        });
        if offset_bytes < end {
            return (kind != 15).then_some(line);
        }
        let next = after.iter().position(|byte| byte & 0x80 != 0).unwrap_or(after.len());
        rest = after.get(next..).unwrap_or_default();
    }
    None
}

/// Reads a number of six bits a byte, the lowest first, its sign in the lowest bit.
fn signed(bytes: &[u8]) -> i64 {
    let (mut value, mut shift) = (0_u64, 0_u32);
    for &byte in bytes.iter().take(10) {
        value |= u64::from(byte & 0x3f).wrapping_shl(shift);
        shift = shift.wrapping_add(6);
        if byte & 0x40 == 0 {
            break;
        }
    }
    let amount = (value >> 1).cast_signed();
    if value & 1 == 0 { amount } else { amount.wrapping_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line tables of `def f():` on line 7, `a = 1` on 8, an empty line 9, `b = 2` on 10, as 3.9,
    /// 3.10 and 3.11 write them.
    #[test]
    fn each_way_of_writing_gives_the_same_lines() {
        let increments = [0, 1, 4, 2];
        let ranges = [4, 1, 4, 2];
        let locations = [0xd8_u8 | 1, 1, 0x80 | 10 << 3, 8, 8, 0x80 | 13 << 3 | 1, 4];
        for (offset, line_there) in [(0, 8), (2, 8), (4, 10), (6, 10)] {
            assert_eq!(line(Lines::Increments, &increments, 7, offset), line_there, "{offset}");
            assert_eq!(line(Lines::Ranges, &ranges, 7, offset), line_there, "{offset}");
        }
        // Two units without a line, one on the first line, two 2 lines further on.
        for (offset, line_there) in [(0, 7), (2, 7), (4, 7), (6, 9), (8, 9), (10, 0)] {
            let table = [0x80 | 11 << 3 | 1, 8, 8, 0x80, 0x21, 0x80 | 13 << 3 | 1, 4];
            assert_eq!(line(Lines::Locations, &table, 6, offset), line_there, "{offset}");
        }
        assert_eq!(line(Lines::Locations, &locations, 7, 400), 0);
        assert_eq!(line(Lines::Ranges, &[2, 0x80, 2, 1], 7, 0), 0);
        assert_eq!(line(Lines::Ranges, &[2, 0x80, 2, 1], 7, 2), 8);
    }

    #[test]
    fn bytes_of_any_kind_give_a_line_or_none() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..state % 23)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    (state >> 33) as u8
                })
                .collect();
            for kind in [Lines::Increments, Lines::Ranges, Lines::Locations] {
                line(kind, &bytes, (state >> 40) as u32, state as usize % 64);
            }
            state = state.wrapping_add(1);
        }
    }
}
