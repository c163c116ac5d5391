//! The kernel's files about this process, line by line.

use heapr_ring::sys;

/// Parses a hexadecimal number at the start of a text; also returns its number of digits.
pub(crate) fn hexadecimal(text: &[u8]) -> (usize, usize) {
    let mut number = 0_usize;
    let mut count = 0_usize;
    for &byte in text {
        let Some(digit) = (byte as char).to_digit(16) else { break };
        number = number.wrapping_shl(4) | digit as usize;
        count = count.wrapping_add(1);
    }
    (number, count)
}

/// Calls `visit` with the beginning of each line of a file.
pub(crate) fn for_each_line(path: &[u8], visit: &mut dyn FnMut(&[u8])) {
    let Ok(file) = sys::open(path, false) else { return };
    let (mut line, mut line_bytes) = ([0_u8; 64], 0_usize);
    let mut chunk = [0_u8; 1024];
    while let Ok(count @ 1..) = sys::read(&file, &mut chunk) {
        for &byte in chunk.get(..count).unwrap_or_default() {
            if byte == b'\n' {
                visit(line.get(..line_bytes).unwrap_or(&line));
                line_bytes = 0;
                continue;
            }
            if let Some(place) = line.get_mut(line_bytes) {
                *place = byte;
            }
            line_bytes = line_bytes.wrapping_add(1);
        }
    }
}

/// Parses a decimal number at the start of a text.
pub(crate) fn decimal(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, &digit| number.wrapping_mul(10).wrapping_add(u64::from(digit & 15)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_no_digit_follows() {
        assert_eq!(hexadecimal(b"7f00a-7f00b r--p"), (0x7f00a, 5));
        assert_eq!(hexadecimal(b"-"), (0, 0));
        assert_eq!(decimal(b"1234 kB"), 1234);
        assert_eq!(decimal(b" 1"), 0);
    }
}
