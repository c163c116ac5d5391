//! Unwinding of a stopped thread by the unwind tables in its modules' files. It gives the part of
//! the stack that each frame occupies.
//!
//! ```text
//!  lower                                                                  higher addresses
//!  | sp .. frame 0 .. return address | frame 1 .. return address | ... |
//! ```
//! The walk ends where the tables give no rule: nothing is guessed.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use heapr_known::machine::{Columns, Machine, SMALLEST_PAGE_BYTES};
use heapr_unwind::{StoppedFrame, UnwindIndex, UnwindRule};
use memmap2::Mmap;
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use crate::mapped_file::map;

/// Code of a mapped file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedCode {
    /// First address.
    pub start_avma: u64,
    /// Exclusive end.
    pub end_avma: u64,
    /// File offset of the first byte.
    pub file_off: u64,
    /// Path at which the file can be read.
    pub path: PathBuf,
}

/// Frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkedFrame {
    /// Address at which the frame's execution resumes.
    pub pc_avma: u64,
    /// Lowest address of the frame.
    pub start_avma: u64,
    /// Exclusive end, behind the return address.
    pub end_avma: u64,
}

/// Unwinder for the stacks of one process.
#[derive(Debug)]
pub struct FrameWalker {
    machine: Machine,
    code: Vec<MappedCode>,
    files: HashMap<PathBuf, Option<UnwindFile>>,
}

/// The unwind tables of a file.
#[derive(Debug)]
struct UnwindFile {
    bytes: Mmap,
    index: (u64, Range<usize>),
    table: (u64, Range<usize>),
    /// File offset, length and address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

impl UnwindFile {
    fn of(path: &Path) -> Option<Self> {
        let bytes = map(path)?;
        let file = object::File::parse(&*bytes).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let (offset, size) = section.file_range()?;
            let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(size)?).ok()?;
            (range.end <= bytes.len()).then_some((section.address(), range))
        };
        let (index, table) = (section(".eh_frame_hdr")?, section(".eh_frame")?);
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let segments = segments.collect();
        Some(Self { index, table, segments, bytes })
    }

    /// Address in the file of the byte at a file offset.
    fn svma(&self, file_off: u64) -> Option<u64> {
        let of_it = self.segments.iter().find(|&&(offset, size, _)| {
            // A mapping begins with the page in which its segment begins.
            (offset & !(SMALLEST_PAGE_BYTES - 1)..offset.saturating_add(size)).contains(&file_off)
        });
        of_it.map(|&(offset, _, svma)| svma.wrapping_sub(offset).wrapping_add(file_off))
    }

    /// Returns the rule for the code at an address of the file.
    fn rule(&self, columns: &Columns, svma: u64) -> Option<UnwindRule> {
        let (index_svma, ref index) = self.index;
        let (table_svma, ref table) = self.table;
        let (index, table) = (&self.bytes[index.clone()], &self.bytes[table.clone()]);
        let bytes_at = |at_svma: u64, count: usize| {
            let start = usize::try_from(at_svma.checked_sub(table_svma)?).ok()?;
            Some(table.get(start..start.checked_add(count)?)?.to_vec())
        };
        let entry_svma = UnwindIndex { bytes: index, address: index_svma }.entry_address(svma)?;
        UnwindRule::of_entry(columns, &bytes_at, entry_svma, svma)
    }
}

impl FrameWalker {
    /// Creates an unwinder for a process with this code.
    #[must_use]
    pub fn new(machine: &Machine, mut code: Vec<MappedCode>) -> Self {
        code.sort_by_key(|code| code.start_avma);
        Self { machine: *machine, code, files: HashMap::new() }
    }

    /// Frames of a stack from the innermost on, at most `most`. `registers` is the list of a
    /// stopped thread's; `read` reads a word of memory.
    pub fn walk(
        &mut self,
        registers: &[u64],
        read: &dyn Fn(u64) -> Option<u64>,
        most: usize,
    ) -> Vec<WalkedFrame> {
        let mut frames: Vec<WalkedFrame> = Vec::new();
        let machine = self.machine;
        let mut frame = StoppedFrame::innermost(&machine, registers);
        while frames.len() < most
            && let (Some(pc_avma), Some(start_avma)) = (frame.pc_avma(&machine), frame.sp_avma(&machine))
        {
            let caller = frame.interrupted(&machine, read).or_else(|| self.caller(&frame, read));
            let Some(caller) = caller else { break };
            let (Some(end_avma), Some(_)) = (caller.sp_avma(&machine), caller.pc_avma(&machine)) else {
                break;
            };
            // The innermost function may have pushed nothing.
            if end_avma < start_avma || end_avma == start_avma && !frame.is_exact() {
                break;
            }
            frames.push(WalkedFrame { pc_avma, start_avma, end_avma });
            frame = caller;
        }
        frames
    }

    /// The caller of a frame, by the tables of its code's file.
    fn caller(&mut self, frame: &StoppedFrame, read: &dyn Fn(u64) -> Option<u64>) -> Option<StoppedFrame> {
        let avma = frame.lookup_avma(&self.machine)?;
        let behind = self.code.partition_point(|code| code.start_avma <= avma);
        let code = self.code[..behind].last().filter(|code| avma < code.end_avma)?;
        let file = self.files.entry(code.path.clone()).or_insert_with_key(|path| UnwindFile::of(path));
        let file = file.as_ref()?;
        let svma = file.svma(code.file_off.checked_add(avma - code.start_avma)?)?;
        frame.caller(&self.machine, &file.rule(&self.machine.columns, svma)?, read)
    }
}

#[cfg(test)]
mod tests {
    use heapr_known::machine::HERE;

    use super::*;

    /// Invented registers end the walk.
    #[test]
    fn what_no_table_tells_ends_the_walk() {
        let path = std::env::current_exe().unwrap();
        let code = MappedCode { start_avma: 0x1000, end_avma: u64::MAX, file_off: 0, path: path.clone() };
        let none =
            MappedCode { path: PathBuf::from("/nowhere"), start_avma: 0, end_avma: 0x1000, ..code.clone() };
        let mut walker = FrameWalker::new(&HERE, vec![code, none]);
        for pc in [0, 5, 0x1000, 0x10_0000, u64::MAX] {
            let mut registers = vec![0; HERE.registers.names.len()];
            registers[HERE.columns.thread_indices[HERE.columns.return_address]] = pc;
            assert!(walker.walk(&registers, &|_| None, 100).is_empty());
            // A stack that leads nowhere, or in a circle.
            assert!(walker.walk(&registers, &|at| Some(at), 100).len() <= 100);
        }
    }
}
