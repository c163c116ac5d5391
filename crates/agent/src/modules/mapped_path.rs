//! Where a module's file is, by the kernel's own list: of one that the program has opened by a path
//! relative to its folder. Asked while the module is mapped, as the address is another's later.

use heapr_ring::sys;

/// Half for what is read, half for the path.
const HALF_BYTES: usize = 4096;
/// Address range, permissions, offset, device and number of the file come before the path.
const RANGE_BYTES: usize = 40;

/// Calls `visit` with the path of the file that is mapped at an address, if one is.
#[cold]
#[inline(never)]
pub(crate) fn of_address(address_avma: usize, visit: &mut dyn FnMut(&[u8])) {
    let Ok(memory) = sys::map_anonymous(HALF_BYTES * 2, false) else { return };
    // SAFETY: mapped just now, zeroed, nobody else's.
    let halves = unsafe { core::slice::from_raw_parts_mut(memory, HALF_BYTES * 2) };
    let (piece, path) = halves.split_at_mut(HALF_BYTES);
    let mut search = Search { address_avma, path, range: [0; RANGE_BYTES], column: 0, length: 0 };
    let mut length = 0;
    if let Ok(maps) = sys::open(b"/proc/self/maps\0", false) {
        while length == 0
            && let Ok(count @ 1..) = sys::read(&maps, piece)
        {
            length = search.go_on(piece.get(..count).unwrap_or_default());
        }
    }
    let path = search.path.get(..length).unwrap_or_default();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    if !path.is_empty() {
        visit(path);
    }
    // SAFETY: as above; nothing of it is used any more.
    unsafe { sys::unmap(memory, HALF_BYTES * 2) };
}

/// The list, as far as it was read.
struct Search<'a> {
    address_avma: usize,
    path: &'a mut [u8],
    /// The present line's beginning, how much of it was read, and how long its path is so far.
    range: [u8; RANGE_BYTES],
    column: usize,
    length: usize,
}

impl Search<'_> {
    /// Bytes of the path, once its line was read; 0: it was not, has no path, or one that is too
    /// long.
    fn go_on(&mut self, piece: &[u8]) -> usize {
        for &byte in piece {
            if byte != b'\n' {
                self.take(byte);
                continue;
            }
            let is_it = holds(&self.range, self.address_avma);
            let length = core::mem::take(&mut self.length);
            (self.range, self.column) = ([0; RANGE_BYTES], 0);
            if is_it && length != 0 && length <= self.path.len() {
                return length;
            }
        }
        0
    }

    fn take(&mut self, byte: u8) {
        if let Some(place) = self.range.get_mut(self.column) {
            *place = byte;
        } else if self.length != 0 || byte == b'/' {
            if let Some(place) = self.path.get_mut(self.length) {
                *place = byte;
            }
            self.length = self.length.wrapping_add(1);
        }
        self.column = self.column.wrapping_add(1);
    }
}

/// Whether a line that begins so is that of the mapping.
fn holds(line: &[u8], address_avma: usize) -> bool {
    let mut ends = line.splitn(3, |&byte| matches!(byte, b'-' | b' ')).map(|digits| {
        let digits = digits.iter().map_while(|&byte| (byte as char).to_digit(16));
        digits.fold(0_usize, |number, digit| number.wrapping_shl(4) | digit as usize)
    });
    let (start, end) = (ends.next().unwrap_or(0), ends.next().unwrap_or(0));
    (start..end).contains(&address_avma)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] =
        b"55d0c0000000-55d0c0001000 r--p 00000000 fe:00 1234                       /usr/bin/a b\n\
        7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
        7f0000001000-7f0000002000 r--p 00000000 fe:00 77   /tmp/plugins/one.so (deleted)\n";

    #[test]
    fn a_path_is_that_of_the_line_whose_range_holds_the_address() {
        let find = |address_avma: usize, piece_bytes: usize, room: usize| {
            let mut path = vec![0; room];
            let mut search =
                Search { address_avma, path: &mut path, range: [0; RANGE_BYTES], column: 0, length: 0 };
            let length =
                MAPS.chunks(piece_bytes).map(|piece| search.go_on(piece)).find(|&length| length != 0);
            path.truncate(length.unwrap_or(0));
            path
        };
        for piece_bytes in [1, 7, 4096] {
            assert_eq!(find(0x55d0_c000_0fff, piece_bytes, 64), b"/usr/bin/a b");
            assert_eq!(find(0x7f00_0000_0000, piece_bytes, 64), b"");
            assert_eq!(find(0x7f00_0000_1000, piece_bytes, 64), b"/tmp/plugins/one.so (deleted)");
            assert_eq!(find(0x7f00_0000_2000, piece_bytes, 64), b"");
            assert_eq!(find(0x55d0_c000_0000, piece_bytes, 4), b"", "there is no room");
        }
    }

    #[test]
    fn the_kernel_names_the_file_of_our_own_code() {
        let mut found = Vec::new();
        of_address(of_address as *const () as usize, &mut |path| found = path.to_vec());
        assert_eq!(String::from_utf8(found).unwrap(), std::env::current_exe().unwrap().to_str().unwrap());
    }
}
