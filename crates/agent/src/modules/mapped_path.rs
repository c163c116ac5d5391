//! Path of a module's file from the kernel's list of mappings. Used for a module that the program
//! has opened by a path relative to its folder. The list is read while the module is mapped,
//! because later another mapping may have the address.

use heapr_ring::sys;

/// Bytes of each half of the buffer: one for the pieces that are read, one for the path.
const HALF_BYTES: usize = 4096;
/// Bytes at the beginning of a line that are stored: address range, permissions, offset, device and
/// inode number come before the path.
const RANGE_BYTES: usize = 40;

/// Calls `visit` with the path of the file that is mapped at an address, if there is one.
#[cold]
#[inline(never)]
pub(crate) fn of_address(address_avma: usize, visit: &mut dyn FnMut(&[u8])) {
    let Ok(memory) = sys::map_anonymous(HALF_BYTES * 2, false) else { return };
    // SAFETY: mapped just now, zeroed, and used here only.
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
    // SAFETY: as above; no reference into it is used any more.
    unsafe { sys::unmap(memory, HALF_BYTES * 2) };
}

/// State of the search through the list.
struct Search<'a> {
    address_avma: usize,
    path: &'a mut [u8],
    /// The current line's beginning, the number of its bytes read, and the length of its path so
    /// far.
    range: [u8; RANGE_BYTES],
    column: usize,
    length: usize,
}

impl Search<'_> {
    /// Returns the number of bytes of the path, once the line was read. Returns 0 if it was not
    /// read, has no path, or has one that is too long.
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

/// True if the address range at the beginning of a line contains the address.
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
