//! Parquet's hybrid of run-length encoding and bit packing, for dictionary indices and definition
//! levels.

/// Smallest number of equal values that is written as a run.
const RUN: usize = 8;

/// Bits that numbers below `count` need; at least 1.
pub(super) fn width(count: usize) -> u8 {
    (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1) as u8
}

fn put_varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the encoded values to `out`. Each has `width` bits.
pub(super) fn encode(values: &[u32], width: u8, out: &mut Vec<u8>) {
    // Where the values begin that are not written yet.
    let (mut from, mut place) = (0, 0);
    while place < values.len() {
        let value = values[place];
        let mut end = place + 1;
        while end < values.len() && values[end] == value {
            end += 1;
        }
        // Bits are packed by eight values.
        let packed_end = from + (place - from).next_multiple_of(8);
        if end >= packed_end + RUN {
            pack(&values[from..packed_end], width, out);
            put_varint(out, (end - packed_end) << 1);
            out.extend_from_slice(&value.to_le_bytes()[..usize::from(width.div_ceil(8))]);
            from = end;
        }
        place = end;
    }
    pack(&values[from..], width, out);
}

fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    put_varint(out, groups << 1 | 1);
    let end = out.len() + groups * usize::from(width);
    let (mut bits, mut count) = (0_u64, 0);
    for &value in values {
        bits |= u64::from(value) << count;
        count += u32::from(width);
        if count >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes()[..count.div_ceil(8) as usize]);
    // Of the last eight those that there are not are zeros.
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(mut bytes: &[u8], width: u8, count: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while found.len() < count {
            let (mut head, mut shift) = (0_usize, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                head |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if head & 1 == 0 {
                let size = usize::from(width.div_ceil(8));
                let mut value = [0; 4];
                value[..size].copy_from_slice(&bytes[..size]);
                bytes = &bytes[size..];
                found.extend(std::iter::repeat_n(u32::from_le_bytes(value), head >> 1));
            } else {
                let values = (head >> 1) * 8;
                for place in 0..values * usize::from(width) / usize::from(width) {
                    let bit = place * usize::from(width);
                    let of = |at: usize| u32::from(bytes[(bit + at) / 8] >> ((bit + at) % 8) & 1) << at;
                    found.push((0..usize::from(width)).map(of).sum());
                }
                bytes = &bytes[values * usize::from(width) / 8..];
            }
        }
        found.truncate(count);
        found
    }

    #[test]
    fn values_come_back_from_runs_and_bits() {
        let mut random = 12345_u64;
        for width in [1, 3, 8, 9, 17] {
            let mut values = Vec::new();
            for _ in 0..200 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = (random >> 40) as u32 & ((1 << width) - 1);
                values.extend(std::iter::repeat_n(value, (random >> 33) as usize % 20));
            }
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            assert_eq!(decode(&bytes, width, values.len()), values, "{width}");
        }
        assert_eq!([width(0), width(1), width(2), width(3), width(256), width(257)], [1, 1, 1, 2, 8, 9]);
    }
}
