//! Call frame information: finds an address's row of the unwind table.
//!
//! ```text
//! .eh_frame_hdr   version, encodings, sorted table (first address -> FDE)
//! .eh_frame       CIE: augmentation, alignments, initial instructions
//!                 FDE: address range, instructions
//! .debug_frame    the same for debuggers, not mapped by the loader;
//!                 addresses as the linker wrote them
//! ```
//! The rules come from the DWARF standard (version 5, section 6.4) and the Linux Standard Base
//! (section 10.6).

use super::byte_reader::{Reader, SEGMENTS_MAX, Segments, encoding};
use super::frame_entry::{Form, for_each_fde, read_fde, walk};
use super::frame_index::FrameIndex;
use super::frame_instructions::run;
use super::unwind_row::{Row, STEP_COLUMNS};
use crate::arch::columns::RETURN_ADDRESS;

/// Unwind tables in memory, and the segments that may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnwindTables {
    source: Source,
    segments: Segments,
}

/// Search method for an address's FDE.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// Binary search in the `.eh_frame_hdr` at this address.
    Header(usize),
    /// Search in a section by an index that the agent made.
    Indexed(Form, FrameIndex),
    /// Linear search in a section `start..end` that a program has registered.
    Registered(usize, usize),
}

impl UnwindTables {
    /// Makes the tables of the `.eh_frame_hdr` at `address`, in a module whose readable segments
    /// are given (`start..end`; empty ones are unused).
    #[must_use]
    pub(crate) fn new(address: usize, segments: &[(usize, usize); SEGMENTS_MAX]) -> Self {
        Self { source: Source::Header(address), segments: Segments(*segments) }
    }

    /// Makes the tables of a section with an index; the section lies in one of the segments.
    pub(crate) fn of_section(
        form: Form,
        index: FrameIndex,
        segments: &[(usize, usize); SEGMENTS_MAX],
    ) -> Self {
        Self { source: Source::Indexed(form, index), segments: Segments(*segments) }
    }

    /// Makes the tables of a section that the program has registered. The section and the memory to
    /// which it points must be readable, as the program's own runtime assumes.
    pub(crate) fn of_registered(begin: usize, end: usize) -> Self {
        Self { source: Source::Registered(begin, end), segments: Segments::ALL }
    }

    /// Returns the end of a registered section, and the range of code that it describes.
    pub(crate) fn registered_bounds(begin: usize) -> Option<(usize, core::ops::Range<usize>)> {
        let head = Segments::ALL.reader(begin)?;
        let (mut low, mut high) = (usize::MAX, 0);
        let mut end = begin;
        let mut one = head;
        let bytes = one.u32()? as usize;
        let is_one_function = Form::EH_FRAME.cie_of(&mut one, false)?.is_some();
        if is_one_function {
            end = begin.checked_add(4)?.checked_add(bytes)?;
        }
        let section = if is_one_function { Reader { position: begin, end } } else { head };
        let last = for_each_fde(&Segments::ALL, Form::EH_FRAME, section, &mut |_, start, bytes| {
            (low, high) = (low.min(start), high.max(start.saturating_add(bytes)));
            false
        });
        (low < high).then_some((end.max(last), low..high))
    }

    /// Returns the first bytes of the code at an address, if its segment is readable.
    pub(crate) fn code_at<const N: usize>(&self, address_avma: usize) -> Option<[u8; N]> {
        self.segments.reader(address_avma)?.bytes()
    }

    /// True if the tables describe how a frame at this address is unwound.
    pub(crate) fn describes(&self, lookup_avma: usize) -> bool {
        find_row::<STEP_COLUMNS>(self, lookup_avma).is_some()
    }

    /// Returns the begin and end of the function that holds an address.
    pub(crate) fn function(&self, lookup_avma: usize) -> Option<(usize, usize)> {
        let (cie, mut fields) = read_fde(&self.segments, self.form(), find_fde(self, lookup_avma)?)?;
        let form = self.form();
        let start = fields.pointer(cie.pointer_encoding, form.data_base, &self.segments)?;
        let bytes = fields.pointer(cie.pointer_encoding & 0x0f, 0, &self.segments)?;
        let start = form.bias.wrapping_add(start);
        let end = start.checked_add(bytes)?;
        (start..end).contains(&lookup_avma).then_some((start, end))
    }

    fn form(&self) -> Form {
        match self.source {
            Source::Indexed(form, _) => form,
            Source::Header(address) => Form { data_base: address, ..Form::EH_FRAME },
            Source::Registered(..) => Form::EH_FRAME,
        }
    }
}

/// A row, and whether its function is a signal trampoline.
#[derive(Debug)]
pub(crate) struct Found<const N: usize> {
    pub(crate) row: Row<N>,
    /// The function's first address.
    pub(crate) start_avma: usize,
    pub(crate) is_signal_frame: bool,
}

/// Returns the row for `lookup_avma`; `None` if no function with unwind information holds it, or
/// the tables are invalid.
#[inline(never)]
pub(crate) fn find_row<const N: usize>(tables: &UnwindTables, lookup_avma: usize) -> Option<Found<N>> {
    let fde = find_fde(tables, lookup_avma)?;
    let (segments, form) = (&tables.segments, tables.form());
    let (cie, mut fields) = read_fde(segments, form, fde)?;
    let start = form.bias.wrapping_add(fields.pointer(cie.pointer_encoding, form.data_base, segments)?);
    let bytes = fields.pointer(cie.pointer_encoding & 0x0f, 0, segments)?;
    if lookup_avma.wrapping_sub(start) >= bytes || cie.return_column != RETURN_ADDRESS as u64 {
        return None;
    }
    if cie.has_augmentation {
        let augmentation = fields.uleb()? as usize;
        fields.skip(augmentation)?;
    }
    let mut row = Row::FIRST;
    run(&mut row, &Row::FIRST, cie.instructions, &cie, (0, usize::MAX), segments)?;
    let initial = row;
    run(
        &mut row,
        &initial,
        fields,
        &cie,
        (start.wrapping_sub(form.bias), lookup_avma.wrapping_sub(form.bias)),
        segments,
    )?;
    Some(Found { row, start_avma: start, is_signal_frame: cie.is_signal_frame })
}

/// Returns the address of the FDE that may hold `lookup_avma`.
fn find_fde(tables: &UnwindTables, lookup_avma: usize) -> Option<usize> {
    const TABLE_ENTRY_BYTES: usize = 8;
    let segments = &tables.segments;
    let header = match tables.source {
        Source::Header(address) => address,
        Source::Indexed(_, index) => return index.find(lookup_avma),
        Source::Registered(begin, end) => {
            return walk(segments, tables.form(), Reader { position: begin, end }, lookup_avma);
        }
    };
    let mut head = segments.reader(header)?;
    let [version, frame_encoding, count_encoding, table_encoding] = head.bytes()?;
    if version != 1 {
        return None;
    }
    let frames = head.pointer(frame_encoding, header, segments)?;
    if table_encoding != encoding::DATA_RELATIVE | encoding::SDATA4 || count_encoding == encoding::OMIT {
        return walk(segments, tables.form(), segments.reader(frames)?, lookup_avma);
    }
    let count = head.pointer(count_encoding, header, segments)?;
    let table = head.take(count.checked_mul(TABLE_ENTRY_BYTES)?)?;
    let entry = |index: usize| -> Option<(usize, usize)> {
        let mut entry =
            Reader { position: table.position.wrapping_add(index.wrapping_mul(TABLE_ENTRY_BYTES)), ..table };
        let first = header.wrapping_add(entry.i32()? as isize as usize);
        let fde = header.wrapping_add(entry.i32()? as isize as usize);
        Some((first, fde))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.wrapping_add(high.wrapping_sub(low) / 2);
        if entry(middle)?.0 <= lookup_avma { low = middle.wrapping_add(1) } else { high = middle }
    }
    entry(low.checked_sub(1)?).map(|(_, fde)| fde)
}
