//! An ELF file laid out in memory as by the loader, not relocated: unwind tables need no
//! relocations.

use std::path::Path;

use crate::unwind::{SEGMENTS_MAX, UnwindTables};

const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const READABLE: u32 = 4;

/// The file's segments, each at its address.
pub(super) struct FileInMemory {
    memory: Vec<u8>,
    pub(super) hdr_avma: usize,
    segments: [(usize, usize); SEGMENTS_MAX],
}

impl FileInMemory {
    /// Loads a file; `None` if it does not exist, or has no unwind tables.
    pub(super) fn load(path: &Path) -> Option<Self> {
        let file = std::fs::read(path).ok()?;
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let number = |offset: usize, bytes: usize| {
            file[offset..offset + bytes].iter().rev().fold(0_usize, |sum, &byte| sum << 8 | usize::from(byte))
        };
        let (table, count) = (number(32, 8), number(56, 2));
        let headers: Vec<usize> = (0..count).map(|index| table + index * 56).collect();
        let kind = |header: usize| number(header, 4) as u32;
        let loaded = || headers.iter().copied().filter(|&header| kind(header) == PT_LOAD);
        let address_svma = |header: usize| number(header + 16, 8);
        let end_svma = |header: usize| address_svma(header) + number(header + 40, 8);
        let low = loaded().map(address_svma).min()?;
        let mut memory = vec![0_u8; loaded().map(end_svma).max()? - low];
        let bias = (memory.as_ptr() as usize).wrapping_sub(low);
        let mut segments = [(0, 0); SEGMENTS_MAX];
        let mut places = segments.iter_mut();
        for header in loaded() {
            let (from, bytes) = (number(header + 8, 8), number(header + 32, 8));
            let at = address_svma(header) - low;
            memory[at..at + bytes].copy_from_slice(&file[from..from + bytes]);
            if number(header + 4, 4) as u32 & READABLE != 0 {
                *places.next()? =
                    (bias.wrapping_add(address_svma(header)), bias.wrapping_add(end_svma(header)));
            }
        }
        let hdr = headers.iter().copied().find(|&header| kind(header) == PT_GNU_EH_FRAME)?;
        let hdr_avma = bias.wrapping_add(address_svma(hdr));
        Some(Self { memory, hdr_avma, segments })
    }

    /// Returns the unwind tables as the agent sees them.
    pub(super) fn hdr(&self) -> UnwindTables {
        UnwindTables::new(self.hdr_avma, &self.segments)
    }

    /// Returns the bytes from an address to the end of the segment that holds it.
    pub(super) fn bytes_from(&self, address_avma: usize) -> &[u8] {
        let &(_, end) =
            self.segments.iter().find(|&&(start, end)| (start..end).contains(&address_avma)).unwrap();
        let base = self.memory.as_ptr() as usize;
        &self.memory[address_avma - base..end - base]
    }

    /// Returns the address of some code bytes.
    pub(super) fn find_code(&self, code: &[u8]) -> Option<usize> {
        let at = self.memory.windows(code.len()).position(|window| window == code)?;
        Some(self.memory.as_ptr() as usize + at)
    }
}
