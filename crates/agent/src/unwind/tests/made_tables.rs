//! Unwind tables made byte by byte, in memory that ends at an unmapped page: a read after the end
//! is fatal.

use crate::unwind::{SEGMENTS_MAX, UnwindTables};

const PAGE_BYTES: usize = 4096;

/// `.eh_frame_hdr` and the bytes after it, readable from `start` to `end`.
pub(super) struct Tables {
    mapping: usize,
    mapping_bytes: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Tables {
    /// Maps the bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let pages = bytes.len().div_ceil(PAGE_BYTES).max(1);
        let mapping_bytes = (pages + 1) * PAGE_BYTES;
        let mapping = heapr_ring::sys::map_anonymous(mapping_bytes, false).unwrap() as usize;
        // SAFETY: the last page of the fresh mapping is given back; the bytes fit before it.
        unsafe {
            heapr_ring::sys::unmap((mapping + pages * PAGE_BYTES) as *mut u8, PAGE_BYTES);
            let start = mapping + pages * PAGE_BYTES - bytes.len();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len());
            Self { mapping, mapping_bytes: mapping_bytes - PAGE_BYTES, start, end: start + bytes.len() }
        }
    }

    /// Returns the tables as the agent sees them, the `.eh_frame_hdr` first.
    pub(super) fn hdr(&self) -> UnwindTables {
        let mut segments = [(0, 0); SEGMENTS_MAX];
        segments[0] = (self.start, self.end);
        UnwindTables::new(self.start, &segments)
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: the mapping made above, to which no reference exists any more.
        unsafe { heapr_ring::sys::unmap(self.mapping as *mut u8, self.mapping_bytes) };
    }
}

/// Contents of a made table.
pub(super) struct Shape<'a> {
    /// Encoding of addresses in the FDE.
    pub(super) pointer_encoding: u8,
    /// First address and bytes of the function, in that encoding.
    pub(super) range: &'a [u8],
    /// Augmentation string of the CIE, without its end; `R` is the encoding above.
    pub(super) augmentation: &'a [u8],
    /// Instructions of the FDE.
    pub(super) instructions: &'a [u8],
    /// Bytes after the tables: code, or targets of pointers.
    pub(super) tail: &'a [u8],
}

/// Offset of the bytes of [`Shape::range`] in the result of [`one_function`].
pub(super) const RANGE_AT: usize = 8 + CIE_BYTES + 8;
const CIE_BYTES: usize = 32;

/// Makes a header without sorted index, a CIE of 32 bytes whose frames begin as after a call, one
/// FDE, and the tail.
pub(super) fn one_function(shape: &Shape<'_>) -> Vec<u8> {
    // Version 1; .eh_frame at pc-relative sdata4; no index.
    let mut bytes = vec![1, 0x1b, 0xff, 0xff];
    bytes.extend(4_u32.to_le_bytes());
    let mut cie = vec![0, 0, 0, 0, 1];
    cie.extend(shape.augmentation);
    cie.push(0);
    // Alignments 1 and -8, return address in column 16.
    cie.extend([1, 0x78, 16]);
    if shape.augmentation.starts_with(b"z") {
        cie.extend([1, shape.pointer_encoding]);
    }
    // CFA = rsp + 8, return address at CFA - 8.
    cie.extend([0x0c, 7, 8, 0x90, 1]);
    cie.resize(CIE_BYTES - 4, 0);
    bytes.extend((cie.len() as u32).to_le_bytes());
    bytes.extend(cie);
    let mut fde = (CIE_BYTES as u32 + 4).to_le_bytes().to_vec();
    fde.extend(shape.range);
    if shape.augmentation.starts_with(b"z") {
        fde.push(0);
    }
    fde.extend(shape.instructions);
    bytes.extend((fde.len() as u32).to_le_bytes());
    bytes.extend(fde);
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(shape.tail);
    bytes
}
