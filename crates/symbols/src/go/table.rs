//! Function table of a Go program (`.gopclntab`), which stripping leaves in place: names, files and
//! lines. Untrusted: every offset is checked against the table.
//!
//! ```text
//! header     magic, number of functions, start of text, five offsets
//! functions  pairs of 32 bits: begin of the code, offset of the function's description; sorted
//! function   begin, offset of the name, ..., offsets of the tables of files and lines
//! ```

/// Magic numbers: Go 1.18 and 1.19; Go 1.20 and later.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Largest length in bytes of a name or path.
const TEXT_BYTES_MAX: usize = 4096;
/// Largest number of steps that are read of one line table.
const STEPS_MAX: usize = 1 << 16;

/// A function of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoFunction {
    pub(crate) name: String,
    pub(crate) start_svma: u64,
    /// Start of the next function.
    pub(crate) end_svma: u64,
    place: usize,
}

/// The opened table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoTable<'a> {
    bytes: &'a [u8],
    text_svma: u64,
    function_count: usize,
    names: usize,
    units: usize,
    files: usize,
    steps: usize,
    functions: usize,
}

impl<'a> GoTable<'a> {
    /// Reads the header. `text_svma` is the start of the program's text, which newer headers omit.
    /// `None`: it is of another version, or invalid.
    pub(crate) fn of(bytes: &'a [u8], text_svma: u64) -> Option<Self> {
        const POINTER_BYTES: u8 = 8;
        let magic = int(bytes, 0)?;
        let is_known = MAGICS.contains(&magic) && bytes.get(7) == Some(&POINTER_BYTES);
        let offset = |at: usize| usize::try_from(word(bytes, at)?).ok().filter(|&at| at <= bytes.len());
        let told_svma = word(bytes, 24)?;
        let table = Self {
            bytes,
            text_svma: if told_svma == 0 { text_svma } else { told_svma },
            function_count: usize::try_from(word(bytes, 8)?).ok()?,
            names: offset(32)?,
            units: offset(40)?,
            files: offset(48)?,
            steps: offset(56)?,
            functions: offset(64)?,
        };
        let pairs_bytes = table.function_count.checked_mul(8)?.checked_add(4)?;
        (is_known && bytes.len() - table.functions >= pairs_bytes).then_some(table)
    }

    /// Function that contains an address.
    pub(crate) fn find(&self, svma: u64) -> Option<GoFunction> {
        let offset = u32::try_from(svma.checked_sub(self.text_svma)?).ok()?;
        let (mut low, mut high) = (0, self.function_count);
        while low < high {
            let middle = low.midpoint(high);
            if self.begin(middle)? <= offset { low = middle + 1 } else { high = middle }
        }
        // Addresses behind the last function are unknown.
        (offset < self.begin(self.function_count)?).then_some(())?;
        self.function(low.checked_sub(1)?)
    }

    /// Function with a name.
    pub(crate) fn named(&self, name: &str) -> Option<GoFunction> {
        (0..self.function_count)
            .find(|&number| self.name_bytes(number) == Some(name.as_bytes()))
            .and_then(|number| self.function(number))
    }

    /// File and line of an address in a function.
    pub(crate) fn line(&self, function: &GoFunction, svma: u64) -> Option<(String, u32)> {
        let offset = svma.checked_sub(function.start_svma)?;
        let of_file = self.value(int(self.bytes, function.place + 20)?, offset)?;
        let of_line = self.value(int(self.bytes, function.place + 24)?, offset)?;
        let unit = int(self.bytes, function.place + 32)? as usize;
        let at = self.units.checked_add(unit.checked_add(usize::try_from(of_file).ok()?)?.checked_mul(4)?)?;
        let file = text(self.bytes, self.files.checked_add(int(self.bytes, at)? as usize)?)?;
        let file = std::str::from_utf8(file).ok().filter(|file| !file.is_empty())?;
        Some((file.to_owned(), u32::try_from(of_line).ok()?))
    }

    fn begin(&self, number: usize) -> Option<u32> {
        int(self.bytes, self.functions.checked_add(number.checked_mul(8)?)?)
    }

    fn place(&self, number: usize) -> Option<usize> {
        let offset = int(self.bytes, self.functions + number * 8 + 4)?;
        self.functions.checked_add(offset as usize)
    }

    fn name_bytes(&self, number: usize) -> Option<&'a [u8]> {
        let name = int(self.bytes, self.place(number)?.checked_add(4)?)?;
        text(self.bytes, self.names.checked_add(name as usize)?)
    }

    fn function(&self, number: usize) -> Option<GoFunction> {
        let name = std::str::from_utf8(self.name_bytes(number)?).ok().filter(|name| !name.is_empty())?;
        Some(GoFunction {
            name: name.to_owned(),
            start_svma: self.text_svma.checked_add(u64::from(self.begin(number)?))?,
            end_svma: self.text_svma.checked_add(u64::from(self.begin(number + 1)?))?,
            place: self.place(number)?,
        })
    }

    /// Looks up the value at an offset of a function's code. A table has pairs: change of the
    /// value, and number of bytes for which it then holds.
    fn value(&self, table: u32, offset: u64) -> Option<i64> {
        let mut rest = self.bytes.get(self.steps.checked_add(table as usize)?..)?;
        let (mut value, mut end) = (-1_i64, 0_u64);
        for step in 0..STEPS_MAX {
            let change = varint(&mut rest)?;
            if change == 0 && step > 0 {
                return None;
            }
            let half = i64::try_from(change >> 1).ok()?;
            value = value.checked_add(if change & 1 == 0 { half } else { -half - 1 })?;
            end = end.checked_add(varint(&mut rest)?)?;
            if offset < end {
                return Some(value);
            }
        }
        None
    }
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn text(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(TEXT_BYTES_MAX)];
    rest.iter().position(|&byte| byte == 0).map(|end| &rest[..end])
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}
