//! Flags of a process's mappings, as the kernel tells them (`VmFlags` in smaps).

use std::io::{BufRead, BufReader};

use crate::first_thread::folder;
use crate::mappings::parse_line;

/// Whether a mapping has a flag of two letters (`ss`: a stack of return addresses). False if the
/// process may not be read.
pub fn has_mapping_with_flag(pid: u32, flag: &str) -> bool {
    smaps(pid).is_some_and(|text| has_flag(text, flag))
}

/// Ranges of addresses that the kernel leaves out of a child (`MADV_DONTFORK`) or zeroes in it
/// (`MADV_WIPEONFORK`). Empty if the process may not be read.
pub fn not_as_it_is_in_forks(pid: u32) -> Vec<(u64, u64)> {
    smaps(pid).map(not_in_forks).unwrap_or_default()
}

fn smaps(pid: u32) -> Option<impl BufRead> {
    let file = std::fs::File::open(folder(pid).join("smaps")).ok()?;
    Some(BufReader::with_capacity(256 << 10, file))
}

/// Flags of a line that tells them.
fn flags_of(line: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(line.strip_prefix(b"VmFlags:")?.split(|&byte| byte == b' '))
}

fn has_flag(text: impl BufRead, flag: &str) -> bool {
    let mut lines = text.split(b'\n').map_while(Result::ok);
    lines.any(|line| flags_of(&line).is_some_and(|mut flags| flags.any(|told| told == flag.as_bytes())))
}

fn not_in_forks(text: impl BufRead) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut range = None;
    for line in text.split(b'\n').map_while(Result::ok) {
        if let Some(mut flags) = flags_of(&line) {
            let is_left_out = |flag: &[u8]| flag == b"dc" || flag == b"wf";
            found.extend(range.take().filter(|_| flags.any(is_left_out)));
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

    const TEXT: &[u8] = b"1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\nVmFlags: rd wr mr \n\
        2000-3000 rw-p 00000000 00:00 0 [anon:wf]\nVmFlags: rd wr dc ac\n3000-4000 rw-p 00000000 00:00 0\n\
        VmFlags: rd wf\nVmFlags: dc\nbroken";

    #[test]
    fn flags_belong_to_the_mapping_above_them() {
        assert_eq!(not_in_forks(TEXT), [(0x2000, 0x3000), (0x3000, 0x4000)]);
    }

    #[test]
    fn a_flag_is_a_word_of_a_line_of_flags() {
        assert!(has_flag(TEXT, "mr") && has_flag(TEXT, "wf"));
        assert!(!has_flag(TEXT, "ss") && !has_flag(TEXT, "w") && !has_flag(&b"anon ss\n"[..], "ss"));
    }
}
