//! Entries of call frame information: CIEs and FDEs, one after another in a section.

use super::byte_reader::{Reader, Segments, encoding};

/// Largest length of an augmentation string with its end; the longest in use is `zPLRS`.
const AUGMENTATION_BYTES_MAX: usize = 16;

/// Format of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Begin of the section if it is a `.debug_frame`, in which CIEs are marked and found in
    /// another manner; 0 for an `.eh_frame`.
    pub(crate) debug_frame: usize,
    /// Bias to add to addresses: those of a `.debug_frame` are as the linker wrote them.
    pub(crate) bias: usize,
    /// Base of data-relative pointers.
    pub(crate) data_base: usize,
}

impl Form {
    /// Format of an `.eh_frame`.
    pub(crate) const EH_FRAME: Self = Self { debug_frame: 0, bias: 0, data_base: 0 };

    /// Reads the field that tells CIEs and FDEs apart. Returns the address of the FDE's CIE; the
    /// inner `None` means that the entry is a CIE.
    pub(super) fn cie_of(self, fields: &mut Reader, is_64: bool) -> Option<Option<usize>> {
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

/// The used fields of a CIE.
#[derive(Debug)]
pub(super) struct Cie {
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    pub(super) return_column: u64,
    pub(super) pointer_encoding: u8,
    pub(super) has_augmentation: bool,
    pub(super) is_signal_frame: bool,
    pub(super) instructions: Reader,
}

/// Finds the FDE for an address by walking a whole section, for sections that a program registers,
/// and tables without a sorted index.
pub(super) fn walk(segments: &Segments, form: Form, section: Reader, lookup_avma: usize) -> Option<usize> {
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

/// Calls `visit` with the address of each FDE of a section, and its function's address and length,
/// until `visit` returns `true`. Ends also at the section's end or at the first invalid entry.
/// Returns the position of the end.
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
        // Functions that the linker has discarded begin at 0.
        let is_there = start != 0 && bytes != 0;
        if is_there && visit(at, form.bias.wrapping_add(start), bytes) {
            return at;
        }
    }
}

/// Reads the entry at a section's position and advances past it. Returns the entry's contents, and
/// whether it is of the 64-bit kind.
fn entry(section: &mut Reader) -> Option<(Reader, bool)> {
    let mut length = u64::from(section.u32()?);
    let is_64 = length == 0xffff_ffff;
    if is_64 {
        length = section.u64()?;
    }
    Some((section.take(usize::try_from(length).ok()?)?, is_64))
}

/// Returns the CIE of the FDE at `address`, and a reader at the FDE's address range.
pub(super) fn read_fde(segments: &Segments, form: Form, address: usize) -> Option<(Cie, Reader)> {
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
    // Bounded, so that a walk over an invalid section stays linear.
    (0..AUGMENTATION_BYTES_MAX).find(|_| fields.u8().is_none_or(|letter| letter == 0))?;
    if version >= 4 && form.debug_frame != 0 {
        // Sizes of addresses, and of segment selectors.
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
            // An unknown augmentation cannot be skipped without its size.
            _ if cie.has_augmentation => break,
            _ => return None,
        }
    }
    Some(cie)
}
