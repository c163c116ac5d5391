//! Call frame information: from an address to the row of its unwind table.
//!
//! ```text
//! .eh_frame_hdr   version, encodings, sorted table (first address -> FDE)
//! .eh_frame       CIE: augmentation, alignments, initial instructions
//!                 FDE: address range, instructions
//! .debug_frame    the same for debuggers, not mapped by the loader; addresses as the linker wrote them
//! ```
//! The rules come from the DWARF standard (version 5, section 6.4) and the Linux Standard Base
//! (section 10.6).

use super::byte_reader::{Reader, SEGMENTS_MAX, Segments, encoding};
use super::frame_index::FrameIndex;

/// Registers with a column: the 16 general ones in DWARF's order, and the return address.
pub(crate) const COLUMNS: usize = 17;
/// Columns of a row that is only looked at for what a [`super::Rule`] holds: rbp, rsp and the
/// return address.
pub(crate) const STEP_COLUMNS: usize = 3;
/// DWARF number of rbp.
pub(crate) const RBP: usize = 6;
/// DWARF number of rsp.
pub(crate) const RSP: usize = 7;
/// DWARF number of the return address column.
pub(crate) const RETURN_ADDRESS: usize = 16;
/// Nested DW_CFA_remember_state that are followed; compilers use one, and each takes a row of
/// stack.
const REMEMBERED_MAX: usize = 2;
/// Length of an augmentation string with its end; the longest in use is `zPLRS`.
const AUGMENTATION_BYTES_MAX: usize = 16;

/// Unwind tables in memory, and the segments that may be read.
#[derive(Debug, Clone, Copy)]
pub struct UnwindTables {
    source: Source,
    segments: Segments,
}

/// Where an address's FDE is looked for.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// By an `.eh_frame_hdr` at this address.
    Header(usize),
    /// In a section, by an index of it.
    Indexed(Form, FrameIndex),
    /// In a section `start..end` that a program has registered, from its begin on.
    Registered(usize, usize),
}

/// How a section is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Where the section begins if it is a `.debug_frame`, in which CIEs are marked and found in
    /// another way; 0: it is an `.eh_frame`.
    pub(crate) debug_frame: usize,
    /// What is added to addresses: those of a `.debug_frame` are as the linker wrote them.
    pub(crate) bias: usize,
    /// What data-relative pointers count from.
    pub(crate) data_base: usize,
}

impl Form {
    /// `.eh_frame`.
    pub(crate) const EH_FRAME: Self = Self { debug_frame: 0, bias: 0, data_base: 0 };

    /// Reads the field that tells CIEs and FDEs apart: where the FDE's CIE is; `None` inside: it is
    /// a CIE.
    fn cie_of(self, fields: &mut Reader, is_64: bool) -> Option<Option<usize>> {
        let at = fields.position;
        if self.debug_frame == 0 {
            let distance = fields.u32()? as usize;
            return Some(if distance == 0 { None } else { Some(at.checked_sub(distance)?) });
        }
        let (offset, mark) =
            if is_64 { (fields.u64()?, u64::MAX) } else { (u64::from(fields.u32()?), u64::from(u32::MAX)) };
        Some((offset != mark).then(|| self.debug_frame.wrapping_add(offset as usize)))
    }
}

impl UnwindTables {
    /// By the `.eh_frame_hdr` at `address`, in a module whose readable segments are given
    /// (`start..end`; empty ones are unused).
    #[must_use]
    pub fn new(address: usize, segments: &[(usize, usize); SEGMENTS_MAX]) -> Self {
        Self { source: Source::Header(address), segments: Segments(*segments) }
    }

    /// Those of a section that has an index, likewise; the section lies in one of the segments.
    pub(crate) fn of_section(
        form: Form,
        index: FrameIndex,
        segments: &[(usize, usize); SEGMENTS_MAX],
    ) -> Self {
        Self { source: Source::Indexed(form, index), segments: Segments(*segments) }
    }

    /// A section that the program has registered: it and what it points to is as readable as the
    /// program's own runtime takes it to be.
    pub(crate) fn of_registered(begin: usize, end: usize) -> Self {
        Self { source: Source::Registered(begin, end), segments: Segments::ALL }
    }

    /// Where a registered section ends, and what code it describes.
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

    /// The first bytes of the code at an address, if its segment is readable.
    pub(crate) fn code_at<const N: usize>(&self, address_avma: usize) -> Option<[u8; N]> {
        self.segments.reader(address_avma)?.bytes()
    }

    /// Whether they say how a frame at this address is unwound.
    pub(crate) fn describes(&self, lookup_avma: usize) -> bool {
        find_row::<STEP_COLUMNS>(self, lookup_avma).is_some()
    }

    fn form(&self) -> Form {
        match self.source {
            Source::Indexed(form, _) => form,
            Source::Header(address) => Form { data_base: address, ..Form::EH_FRAME },
            Source::Registered(..) => Form::EH_FRAME,
        }
    }
}

/// Where an expression lies: its bytes' number above [`Expression::ADDRESS_BITS`] bits of address.
/// One word, because rows full of these are copied on small stacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expression(u64);

impl Expression {
    /// Addresses of a process are below 2^47.
    const ADDRESS_BITS: u32 = 48;

    /// The next expression of call frame instructions; `None` if it does not fit the packing.
    fn parse(code: &mut Reader) -> Option<Self> {
        let bytes = code.uleb()? as usize;
        let body = code.take(bytes)?;
        let (address, count) = (body.position as u64, u16::try_from(bytes).ok()?);
        (address >> Self::ADDRESS_BITS == 0).then_some(Self(u64::from(count) << Self::ADDRESS_BITS | address))
    }

    /// Its operations.
    pub(crate) fn code(self) -> Reader {
        let position = (self.0 & ((1 << Self::ADDRESS_BITS) - 1)) as usize;
        Reader { position, end: position.wrapping_add((self.0 >> Self::ADDRESS_BITS) as usize) }
    }
}

/// How a register of the caller is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Not mentioned: unchanged.
    Same,
    /// Cannot be found; for the return address: there is no caller.
    Undefined,
    /// Saved at CFA + offset.
    Offset(i64),
    /// Is CFA + offset.
    ValueOffset(i64),
    /// Is in another register.
    Register(u8),
    /// Saved at the address that the expression gives.
    Expression(Expression),
    /// Is what the expression gives.
    ValueExpression(Expression),
}

/// How the canonical frame address is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cfa {
    /// Register plus offset.
    Register(u8, i64),
    /// What the expression gives.
    Expression(Expression),
}

/// A row of the unwind table, with all [`COLUMNS`], or only the [`STEP_COLUMNS`]: a row is 16 bytes
/// and 16 for each column, and there are half a dozen of them on the stack while instructions run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<const N: usize> {
    pub(crate) cfa: Cfa,
    columns: [Column; N],
}

impl<const N: usize> Row<N> {
    /// Before any instruction.
    const FIRST: Self = Self { cfa: Cfa::Register(RSP as u8, 8), columns: [Column::Same; N] };

    /// Where a register's column is.
    #[inline(always)]
    fn place(register: u64) -> usize {
        match usize::try_from(register) {
            Ok(register) if N == COLUMNS => register,
            Ok(RBP) => 0,
            Ok(RSP) => 1,
            Ok(RETURN_ADDRESS) => 2,
            _ => usize::MAX,
        }
    }

    /// How a register is found. Those without a column (vector registers and the like) do not
    /// matter.
    #[inline(always)]
    pub(crate) fn column(&self, register: usize) -> Column {
        self.columns.get(Self::place(register as u64)).copied().unwrap_or(Column::Same)
    }

    #[inline(always)]
    fn set(&mut self, register: u64, column: Column) {
        if let Some(place) = self.columns.get_mut(Self::place(register)) {
            *place = column;
        }
    }

    /// Back to what the common instructions have set.
    fn restore(&mut self, initial: &Self, register: u64) {
        let column = initial.columns.get(Self::place(register)).copied();
        self.set(register, column.unwrap_or(Column::Same));
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

/// The parts of a CIE that matter.
#[derive(Debug)]
struct Cie {
    code_alignment: u64,
    data_alignment: i64,
    return_column: u64,
    pointer_encoding: u8,
    has_augmentation: bool,
    is_signal_frame: bool,
    instructions: Reader,
}

/// The row for `lookup_avma`; `None` if no function with unwind information holds it, or the tables
/// make no sense.
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

/// Address of the FDE that may hold `lookup_avma`.
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

/// The FDE for an address by walking a whole section: what a program registers, and tables without
/// a sorted index.
fn walk(segments: &Segments, form: Form, section: Reader, lookup_avma: usize) -> Option<usize> {
    let mut found = None;
    for_each_fde(segments, form, section, &mut |fde, start, bytes| {
        let is_it = lookup_avma.wrapping_sub(start) < bytes;
        if is_it {
            found = Some(fde);
        }
        is_it
    });
    found
}

/// Calls `visit` with the address of each FDE of a section, and where its function lies, until it
/// says to stop (`true`), or up to the section's end or the first entry that makes no sense; where
/// that is.
pub(crate) fn for_each_fde(
    segments: &Segments,
    form: Form,
    mut section: Reader,
    visit: &mut dyn FnMut(usize, usize, usize) -> bool,
) -> usize {
    loop {
        let at = section.position;
        let mut head = section;
        let Some((mut entry, is_64)) = entry(&mut head).filter(|(entry, _)| !entry.is_at_end()) else {
            return at;
        };
        section = head;
        if !matches!(form.cie_of(&mut entry, is_64), Some(Some(_))) {
            continue;
        }
        let Some((cie, mut fields)) = read_fde(segments, form, at) else { continue };
        let start = fields.pointer(cie.pointer_encoding, form.data_base, segments);
        let bytes = fields.pointer(cie.pointer_encoding & 0x0f, 0, segments);
        let (Some(start), Some(bytes)) = (start, bytes) else { return at };
        // Functions that the linker has left out begin at 0.
        let is_there = start != 0 && bytes != 0;
        if is_there && visit(at, form.bias.wrapping_add(start), bytes) {
            return at;
        }
    }
}

/// The contents of the entry at a section's position, which is passed, and whether it is of the
/// 64-bit kind.
fn entry(section: &mut Reader) -> Option<(Reader, bool)> {
    let mut length = u64::from(section.u32()?);
    let is_64 = length == 0xffff_ffff;
    if is_64 {
        length = section.u64()?;
    }
    Some((section.take(usize::try_from(length).ok()?)?, is_64))
}

/// The CIE of the FDE at `address`, and a reader at the FDE's address range.
fn read_fde(segments: &Segments, form: Form, address: usize) -> Option<(Cie, Reader)> {
    let (mut fde, is_64) = entry(&mut segments.reader(address)?)?;
    let cie = form.cie_of(&mut fde, is_64)??;
    Some((read_cie(segments, form, cie)?, fde))
}

fn read_cie(segments: &Segments, form: Form, address: usize) -> Option<Cie> {
    let (mut fields, is_64) = entry(&mut segments.reader(address)?)?;
    if form.cie_of(&mut fields, is_64)?.is_some() {
        return None;
    }
    let version = fields.u8()?;
    let mut augmentation = fields;
    // Bounded, so that a walk over a section of nonsense stays linear.
    (0..AUGMENTATION_BYTES_MAX).find(|_| fields.u8().is_none_or(|letter| letter == 0))?;
    if version >= 4 && form.debug_frame != 0 {
        // The size of addresses, and of segment selectors.
        let sizes: [u8; 2] = fields.bytes()?;
        if sizes != [8, 0] {
            return None;
        }
    }
    let code_alignment = fields.uleb()?;
    let data_alignment = fields.sleb()?;
    let return_column = if version == 1 { u64::from(fields.u8()?) } else { fields.uleb()? };
    let mut cie = Cie {
        code_alignment,
        data_alignment,
        return_column,
        pointer_encoding: encoding::ABSOLUTE,
        has_augmentation: false,
        is_signal_frame: false,
        instructions: fields,
    };
    let mut data = fields;
    loop {
        match augmentation.u8()? {
            0 => break,
            b'z' => {
                let bytes = fields.uleb()? as usize;
                data = fields.take(bytes)?;
                cie.has_augmentation = true;
                cie.instructions = fields;
            }
            b'R' => cie.pointer_encoding = data.u8()?,
            b'P' => {
                let kind = data.u8()?;
                data.pointer(kind & !encoding::INDIRECT, 0, segments)?;
            }
            b'L' => drop(data.u8()?),
            b'S' => cie.is_signal_frame = true,
            b'B' | b'G' => {}
            // An augmentation with a meaning that is not known cannot be stepped over without its
            // size.
            _ if cie.has_augmentation => break,
            _ => return None,
        }
    }
    Some(cie)
}

/// Executes call frame instructions from the location `start` until it passes `until`.
fn run<const N: usize>(
    row: &mut Row<N>,
    initial: &Row<N>,
    mut code: Reader,
    cie: &Cie,
    (start, until): (usize, usize),
    segments: &Segments,
) -> Option<()> {
    let mut location = start;
    let mut remembered: [Option<Row<N>>; REMEMBERED_MAX] = [None; REMEMBERED_MAX];
    let mut remembered_count = 0_usize;
    let factored = |value: i64| value.wrapping_mul(cie.data_alignment);
    while !code.is_at_end() {
        let instruction = code.u8()?;
        let operand = instruction & 0x3f;
        let mut advance = None;
        match instruction >> 6 {
            1 => advance = Some(u64::from(operand)),
            2 => row.set(u64::from(operand), Column::Offset(factored(code.uleb()?.cast_signed()))),
            3 => row.restore(initial, u64::from(operand)),
            _ => match instruction {
                0x00 => {}
                0x01 => {
                    let to = code.pointer(cie.pointer_encoding, 0, segments)?;
                    if to > until {
                        return Some(());
                    }
                    location = to;
                }
                0x02 => advance = Some(u64::from(code.u8()?)),
                0x03 => advance = Some(u64::from(code.u16()?)),
                0x04 => advance = Some(u64::from(code.u32()?)),
                0x05 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.uleb()?.cast_signed())));
                }
                0x06 => row.restore(initial, code.uleb()?),
                0x07 => row.set(code.uleb()?, Column::Undefined),
                0x08 => row.set(code.uleb()?, Column::Same),
                0x09 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Register(u8::try_from(code.uleb()?).ok()?));
                }
                0x0a => {
                    *remembered.get_mut(remembered_count)? = Some(*row);
                    remembered_count = remembered_count.wrapping_add(1);
                }
                0x0b => {
                    remembered_count = remembered_count.checked_sub(1)?;
                    *row = (*remembered.get(remembered_count)?)?;
                }
                0x0c => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    row.cfa = Cfa::Register(register, code.uleb()?.cast_signed());
                }
                0x0d => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    let Cfa::Register(_, offset) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, offset);
                }
                0x0e => {
                    let Cfa::Register(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, code.uleb()?.cast_signed());
                }
                0x0f => row.cfa = Cfa::Expression(Expression::parse(&mut code)?),
                0x10 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Expression(Expression::parse(&mut code)?));
                }
                0x11 => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.sleb()?)));
                }
                0x12 => {
                    let register = u8::try_from(code.uleb()?).ok()?;
                    row.cfa = Cfa::Register(register, factored(code.sleb()?));
                }
                0x13 => {
                    let Cfa::Register(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Register(register, factored(code.sleb()?));
                }
                0x14 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueOffset(factored(code.uleb()?.cast_signed())));
                }
                0x15 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueOffset(factored(code.sleb()?)));
                }
                0x16 => {
                    let register = code.uleb()?;
                    row.set(register, Column::ValueExpression(Expression::parse(&mut code)?));
                }
                // DW_CFA_GNU_args_size: how much the callee's arguments take, of no use here.
                0x2e => drop(code.uleb()?),
                // DW_CFA_GNU_negative_offset_extended.
                0x2f => {
                    let register = code.uleb()?;
                    row.set(register, Column::Offset(factored(code.uleb()?.cast_signed().wrapping_neg())));
                }
                _ => return None,
            },
        }
        if let Some(delta) = advance {
            let to = location.wrapping_add(delta.wrapping_mul(cie.code_alignment) as usize);
            if to > until {
                return Some(());
            }
            location = to;
        }
    }
    Some(())
}
