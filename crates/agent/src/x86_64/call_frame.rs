//! Call frame information: from an address to the row of its unwind table.
//!
//! ```text
//! .eh_frame_hdr   version, encodings, sorted table (first address -> FDE)
//! .eh_frame       CIE: augmentation, alignments, initial instructions
//!                 FDE: address range, instructions
//! ```
//! The rules come from the DWARF standard (version 5, section 6.4) and the Linux Standard Base (section 10.6).

use super::byte_reader::{Reader, SEGMENTS_MAX, Segments, encoding};

/// Registers with a column: the 16 general ones in DWARF's order, and the return address.
pub(crate) const COLUMNS: usize = 17;
/// Columns of a row that is only looked at for what a [`super::Rule`] holds: rbp, rsp and the return address.
pub(crate) const STEP_COLUMNS: usize = 3;
/// DWARF number of rbp.
pub(crate) const RBP: usize = 6;
/// DWARF number of rsp.
pub(crate) const RSP: usize = 7;
/// DWARF number of the return address column.
pub(crate) const RETURN_ADDRESS: usize = 16;
/// Nested DW_CFA_remember_state that are followed; compilers use one, and each takes a row of stack.
const REMEMBERED_MAX: usize = 2;
/// Length of an augmentation string with its end; the longest in use is `zPLRS`.
const AUGMENTATION_BYTES_MAX: usize = 16;

/// A mapped `.eh_frame_hdr` and the segments that may be read.
#[derive(Debug, Clone, Copy)]
pub struct EhFrameHdr {
    address: usize,
    segments: Segments,
}

impl EhFrameHdr {
    /// The section at `address`, in a module whose readable segments are given (`start..end`; empty ones are unused).
    #[must_use]
    pub fn new(address: usize, segments: &[(usize, usize); SEGMENTS_MAX]) -> Self {
        Self { address, segments: Segments(*segments) }
    }

    /// The first bytes of the code at an address, if its segment is readable.
    pub(crate) fn code_at<const N: usize>(&self, address_avma: usize) -> Option<[u8; N]> {
        self.segments.reader(address_avma)?.bytes()
    }
}

/// Where an expression lies: its bytes' number above [`Expression::ADDRESS_BITS`] bits of address. One word, because rows
/// full of these are copied on small stacks.
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

/// A row of the unwind table, with all [`COLUMNS`], or only the [`STEP_COLUMNS`]: a row is 16 bytes and 16 for each column,
/// and there are half a dozen of them on the stack while instructions run.
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

    /// How a register is found. Those without a column (vector registers and the like) do not matter.
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

/// The row for `lookup_avma`; `None` if no function with unwind information holds it, or the tables make no sense.
#[inline(never)]
pub(crate) fn find_row<const N: usize>(hdr: &EhFrameHdr, lookup_avma: usize) -> Option<Found<N>> {
    let fde = find_fde(hdr, lookup_avma)?;
    let segments = &hdr.segments;
    let (cie, mut fields) = read_fde(segments, fde)?;
    let start = fields.pointer(cie.pointer_encoding, hdr.address, segments)?;
    let bytes = fields.pointer(cie.pointer_encoding & 0x0f, 0, segments)?;
    if lookup_avma.wrapping_sub(start) >= bytes || cie.return_column != RETURN_ADDRESS as u64 {
        return None;
    }
    if cie.has_augmentation {
        let augmentation = fields.uleb()? as usize;
        fields.skip(augmentation)?;
    }
    let mut row = Row::FIRST;
    run(&mut row, &Row::FIRST, cie.instructions, &cie, 0, usize::MAX, segments)?;
    let initial = row;
    run(&mut row, &initial, fields, &cie, start, lookup_avma, segments)?;
    Some(Found { row, start_avma: start, is_signal_frame: cie.is_signal_frame })
}

/// Address of the FDE that may hold `lookup_avma`.
fn find_fde(hdr: &EhFrameHdr, lookup_avma: usize) -> Option<usize> {
    const TABLE_ENTRY_BYTES: usize = 8;
    let mut head = hdr.segments.reader(hdr.address)?;
    let [version, frame_encoding, count_encoding, table_encoding] = head.bytes()?;
    if version != 1 {
        return None;
    }
    let frames = head.pointer(frame_encoding, hdr.address, &hdr.segments)?;
    if table_encoding != encoding::DATA_RELATIVE | encoding::SDATA4 || count_encoding == encoding::OMIT {
        return walk(hdr, frames, lookup_avma);
    }
    let count = head.pointer(count_encoding, hdr.address, &hdr.segments)?;
    let table = head.take(count.checked_mul(TABLE_ENTRY_BYTES)?)?;
    let entry = |index: usize| -> Option<(usize, usize)> {
        let mut entry =
            Reader { position: table.position.wrapping_add(index.wrapping_mul(TABLE_ENTRY_BYTES)), ..table };
        let first = hdr.address.wrapping_add(entry.i32()? as isize as usize);
        let fde = hdr.address.wrapping_add(entry.i32()? as isize as usize);
        Some((first, fde))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.wrapping_add(high.wrapping_sub(low) / 2);
        if entry(middle)?.0 <= lookup_avma { low = middle.wrapping_add(1) } else { high = middle }
    }
    entry(low.checked_sub(1)?).map(|(_, fde)| fde)
}

/// The FDE for an address by walking the whole section: for tables without a sorted index, which no linker in use makes.
fn walk(hdr: &EhFrameHdr, frames: usize, lookup_avma: usize) -> Option<usize> {
    let mut section = hdr.segments.reader(frames)?;
    loop {
        let at = section.position;
        let length = section.u32()? as usize;
        if length == 0 || length >= 0xffff_fff0 {
            return None;
        }
        let mut entry = section.take(length)?;
        if entry.u32()? == 0 {
            continue;
        }
        let Some((cie, mut fields)) = read_fde(&hdr.segments, at) else { continue };
        let start = fields.pointer(cie.pointer_encoding, hdr.address, &hdr.segments)?;
        let bytes = fields.pointer(cie.pointer_encoding & 0x0f, 0, &hdr.segments)?;
        if lookup_avma.wrapping_sub(start) < bytes {
            return Some(at);
        }
    }
}

/// The CIE of the FDE at `address`, and a reader at the FDE's address range.
fn read_fde(segments: &Segments, address: usize) -> Option<(Cie, Reader)> {
    let mut section = segments.reader(address)?;
    let mut length = u64::from(section.u32()?);
    if length == 0xffff_ffff {
        length = section.u64()?;
    }
    let mut fde = section.take(usize::try_from(length).ok()?)?;
    let cie_field = fde.position;
    let distance = fde.u32()?;
    if distance == 0 {
        return None;
    }
    let cie = read_cie(segments, cie_field.checked_sub(distance as usize)?)?;
    Some((cie, fde))
}

fn read_cie(segments: &Segments, address: usize) -> Option<Cie> {
    let mut section = segments.reader(address)?;
    let mut length = u64::from(section.u32()?);
    if length == 0xffff_ffff {
        length = section.u64()?;
    }
    let mut fields = section.take(usize::try_from(length).ok()?)?;
    if fields.u32()? != 0 {
        return None;
    }
    let version = fields.u8()?;
    let mut augmentation = fields;
    // Bounded, so that a walk over a section of nonsense stays linear.
    (0..AUGMENTATION_BYTES_MAX).find(|_| fields.u8().is_none_or(|letter| letter == 0))?;
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
            // An augmentation with a meaning that is not known cannot be stepped over without its size.
            _ if cie.has_augmentation => break,
            _ => return None,
        }
    }
    Some(cie)
}

/// Executes call frame instructions until the location passes `until`.
fn run<const N: usize>(
    row: &mut Row<N>,
    initial: &Row<N>,
    mut code: Reader,
    cie: &Cie,
    start: usize,
    until: usize,
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
