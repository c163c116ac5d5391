//! Memory of a process that a forked child lacks or gets empty.

use std::io::BufReader;

use crate::first_thread::folder;
use crate::mappings::parse_line;

/// Ranges of addresses that the kernel leaves out of a child (`MADV_DONTFORK`) or zeroes in it
/// (`MADV_WIPEONFORK`). Empty if the process may not be read.
pub fn not_as_it_is_in_forks(pid: u32) -> Vec<(u64, u64)> {
    let Ok(file) = std::fs::File::open(folder(pid).join("smaps")) else { return Vec::new() };
    found_in(BufReader::with_capacity(256 << 10, file))
}

fn found_in(text: impl std::io::BufRead) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut range = None;
    for line in text.split(b'\n').map_while(Result::ok) {
        if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            let is_left_out = |flag: &[u8]| flag == b"dc" || flag == b"wf";
            found.extend(range.take().filter(|_| flags.split(|&byte| byte == b' ').any(is_left_out)));
        } else if !line.first().is_some_and(u8::is_ascii_uppercase) {
            let mapping = parse_line(&line);
            range = mapping.map(|mapping| (mapping.start_avma, mapping.end_avma));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_belong_to_the_mapping_above_them() {
        let text = b"1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\nVmFlags: rd wr mr \n\
            2000-3000 rw-p 00000000 00:00 0 [anon:wf]\nVmFlags: rd wr dc ac\n3000-4000 rw-p 00000000 00:00 0\n\
            VmFlags: rd wf\nVmFlags: dc\nbroken";
        assert_eq!(found_in(text.as_slice()), [(0x2000, 0x3000), (0x3000, 0x4000)]);
    }
}
