//! Reads unwind tables in mapped memory, bounded by the module's readable segments.

use heapr_wire::arch::PAGE_BYTES_MIN;

use crate::arch::ADDRESS_END;

/// Largest number of readable segments of a module that are used.
pub(crate) const SEGMENTS_MAX: usize = 8;

/// The readable address ranges of a module, `start..end`; unused ones are empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segments(pub(crate) [(usize, usize); SEGMENTS_MAX]);

impl Segments {
    /// All addresses but those of the first page: for tables that the program itself reads without
    /// checks.
    pub(crate) const ALL: Self = {
        let mut ranges = [(0, 0); SEGMENTS_MAX];
        ranges[0] = (PAGE_BYTES_MIN, ADDRESS_END);
        Self(ranges)
    };

    /// Returns a reader from `address` to the end of the segment that holds it.
    pub(crate) fn reader(&self, address: usize) -> Option<Reader> {
        let &(_, end) = self.0.iter().find(|&&(start, end)| address >= start && address < end)?;
        Some(Reader { position: address, end })
    }
}

/// A position in a segment. Every read is checked against the segment's end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) position: usize,
    pub(crate) end: usize,
}

/// Pointer encodings of the unwind tables (`DW_EH_PE_*`).
pub(crate) mod encoding {
    pub(crate) const ABSOLUTE: u8 = 0x00;
    pub(crate) const ULEB128: u8 = 0x01;
    pub(crate) const UDATA2: u8 = 0x02;
    pub(crate) const UDATA4: u8 = 0x03;
    pub(crate) const UDATA8: u8 = 0x04;
    pub(crate) const SLEB128: u8 = 0x09;
    pub(crate) const SDATA2: u8 = 0x0a;
    pub(crate) const SDATA4: u8 = 0x0b;
    pub(crate) const SDATA8: u8 = 0x0c;
    pub(crate) const PC_RELATIVE: u8 = 0x10;
    pub(crate) const DATA_RELATIVE: u8 = 0x30;
    pub(crate) const INDIRECT: u8 = 0x80;
    pub(crate) const OMIT: u8 = 0xff;
}

impl Reader {
    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.end
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.end.checked_sub(self.position)? < N {
            return None;
        }
        // SAFETY: N bytes from the position lie inside a readable segment: the reader was made for
        // one, and the check above holds. The module stays mapped: a frame of it is on the stack
        // that is being unwound.
        let bytes = unsafe { (self.position as *const [u8; N]).read_unaligned() };
        self.position = self.position.wrapping_add(N);
        Some(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.bytes().map(i32::from_le_bytes)
    }

    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f).wrapping_shl(shift);
            }
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0_i64;
        for shift in (0..70_u32).step_by(7) {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f).wrapping_shl(shift);
            }
            if byte & 0x80 == 0 {
                if shift.wrapping_add(7) < 64 && byte & 0x40 != 0 {
                    value |= (-1_i64).wrapping_shl(shift.wrapping_add(7));
                }
                return Some(value);
            }
        }
        None
    }

    /// Skips `count` bytes.
    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        let to = self.position.checked_add(count)?;
        if to > self.end {
            return None;
        }
        self.position = to;
        Some(())
    }

    /// Returns a reader of the next `count` bytes, and skips them.
    pub(crate) fn take(&mut self, count: usize) -> Option<Self> {
        let start = self.position;
        self.skip(count)?;
        Some(Self { position: start, end: self.position })
    }

    /// Reads a pointer of the given encoding; data-relative pointers are relative to `data_base`.
    pub(crate) fn pointer(&mut self, kind: u8, data_base: usize, segments: &Segments) -> Option<usize> {
        if kind == encoding::OMIT {
            return None;
        }
        let here = self.position;
        let raw = match kind & 0x0f {
            encoding::ABSOLUTE | encoding::UDATA8 | encoding::SDATA8 => self.u64()? as usize,
            encoding::ULEB128 => self.uleb()? as usize,
            encoding::SLEB128 => self.sleb()? as usize,
            encoding::UDATA2 => usize::from(self.u16()?),
            encoding::UDATA4 => self.u32()? as usize,
            encoding::SDATA2 => self.u16()?.cast_signed() as isize as usize,
            encoding::SDATA4 => self.i32()? as isize as usize,
            _ => return None,
        };
        let base = match kind & 0x70 {
            encoding::ABSOLUTE => 0,
            encoding::PC_RELATIVE => here,
            encoding::DATA_RELATIVE => data_base,
            _ => return None,
        };
        let address = base.wrapping_add(raw);
        if kind & encoding::INDIRECT == 0 {
            return Some(address);
        }
        segments.reader(address)?.u64().map(|value| value as usize)
    }
}
