//! A method: its name, class and file, and the line of an instruction.
//!
//! ```text
//! Method -> ConstMethod | code … | lines … |
//!                  '-> ConstantPool | names … |
//!                            '-> class -> its name
//! ```

use heapr_wire::{LANGUAGE_JAVA, LINE_MAX, language_place};

use crate::languages::code_table;
use crate::languages::java::inlined::mix;
use crate::languages::java::line_numbers;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::modules::java_layout::Layout;
use crate::record::thread::Scope;

const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 512;
/// Longest name of a class or a method that is believed, in bytes.
const SYMBOL_BYTES_MAX: usize = 4096;
/// Beginning of the part of a class's name that differs each time the program runs.
const HIDDEN: &[u8] = b"+0x";

/// Buffers for texts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Texts {
    name: [u8; NAME_BYTES_MAX],
    file: [u8; FILE_BYTES_MAX],
}

/// A method as read at this event. Later another method may lie at its address.
#[derive(Debug)]
pub(crate) struct Method {
    constant: usize,
    pool: usize,
    class: usize,
    name: &'static [u8],
    class_name: &'static [u8],
    code_bytes: usize,
    /// Hash that distinguishes the method from all others.
    pub(crate) hash: u64,
}

impl Method {
    /// Reads the method at an address; `None` if there is no valid one.
    pub(crate) fn read(readable: &mut Readable, layout: &Layout, method: usize) -> Option<Self> {
        let constant = readable.word(method.checked_add(layout.constant_method)?)?;
        if !readable.has(constant, layout.constant_method_bytes) {
            return None;
        }
        let pool = readable.word(constant.wrapping_add(layout.constants))?;
        let name_index = short(readable, constant.wrapping_add(layout.name_index))?;
        let code_bytes = short(readable, constant.wrapping_add(layout.code_bytes))?;
        let name = constant_text(readable, layout, pool, name_index)?;
        let class = readable.word(pool.checked_add(layout.holder)?)?;
        let class_name = readable.word(class.checked_add(layout.class_name)?)?;
        let class_name = text(readable, layout, class_name)?;
        let mut hash = mix(constant as u64, code_bytes as u64);
        for bytes in [class_name, name] {
            for part in bytes.chunks(8) {
                let mut word = [0; 8];
                word.iter_mut().zip(part).for_each(|(word, &byte)| *word = byte);
                hash = mix(hash, u64::from_le_bytes(word));
            }
            hash = mix(hash, bytes.len() as u64);
        }
        Some(Self { constant, pool, class, name, class_name, code_bytes, hash })
    }

    /// Returns the index of the instruction at an address; -1 for a native method, which has no
    /// instructions. Returns `None` if the address is not in the method.
    pub(crate) fn index_of(&self, layout: &Layout, instruction: usize) -> Option<i32> {
        if instruction == 0 && self.code_bytes == 0 {
            return Some(-1);
        }
        let index = instruction.checked_sub(self.constant.wrapping_add(layout.constant_method_bytes))?;
        i32::try_from(index).ok().filter(|_| index < self.code_bytes)
    }

    /// Returns the recorder's number for the method, with the line of an instruction (negative:
    /// unknown).
    #[cold]
    #[inline(never)]
    pub(crate) fn place(
        &self,
        scope: &mut Scope,
        readable: &mut Readable,
        layout: &Layout,
        texts: &mut Texts,
        instruction: i32,
    ) -> Option<u64> {
        let mut name = Text { out: &mut texts.name, bytes: 0 };
        let hidden = self.class_name.windows(HIDDEN.len()).position(|part| part == HIDDEN);
        let class_name = hidden.and_then(|end| self.class_name.get(..end)).unwrap_or(self.class_name);
        for &byte in class_name {
            name.push_bytes(&[if byte == b'/' { b'.' } else { byte }]);
        }
        name.push_bytes(b".");
        name.push_bytes(self.name);
        let name_bytes = name.bytes;

        let mut file = Text { out: &mut texts.file, bytes: 0 };
        let at = match layout.file_in_pool {
            Some(offset) => self.pool.wrapping_add(offset),
            None => self.class.wrapping_add(layout.file_in_class),
        };
        if let Some(index) = short(readable, at).filter(|&index| index != 0)
            && let Some(bytes) = constant_text(readable, layout, self.pool, index)
        {
            file.push_bytes(bytes);
        }
        let file_bytes = file.bytes;

        let flags = readable.bytes(self.constant.wrapping_add(layout.flags), 2)?;
        let has_lines = flags.first().is_some_and(|&flags| u32::from(flags) & layout.has_lines != 0);
        let table = self.constant.wrapping_add(layout.constant_method_bytes).wrapping_add(self.code_bytes);
        let lines = has_lines.then(|| line_numbers::line(readable, table, layout.version(), instruction));
        let (line, first_line) = lines.flatten().unwrap_or((0, 0));
        let name = texts.name.get(..name_bytes)?;
        let file = texts.file.get(..file_bytes)?;
        let number = code_table::number_of(scope, LANGUAGE_JAVA, (name, file, first_line));
        Some(language_place(LANGUAGE_JAVA, number, line.min(LINE_MAX)))
    }
}

fn short(readable: &mut Readable, address: usize) -> Option<usize> {
    let bytes = readable.bytes(address, 2)?;
    Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
}

/// Returns a text from the constants of a class.
fn constant_text(
    readable: &mut Readable,
    layout: &Layout,
    pool: usize,
    index: usize,
) -> Option<&'static [u8]> {
    if !readable.has(pool, layout.pool_bytes) {
        return None;
    }
    let length = readable.bytes(pool.wrapping_add(layout.pool_length), 4)?;
    if index >= u32::from_le_bytes(length.try_into().ok()?) as usize {
        return None;
    }
    let symbol = readable.word(pool.wrapping_add(layout.pool_bytes).wrapping_add(index.wrapping_mul(8)))?;
    text(readable, layout, symbol)
}

/// Returns the text of a symbol.
fn text(readable: &mut Readable, layout: &Layout, symbol: usize) -> Option<&'static [u8]> {
    let bytes = short(readable, symbol.checked_add(layout.name_bytes)?)?;
    let text = symbol.checked_add(layout.name_text)?;
    (bytes != 0 && bytes <= SYMBOL_BYTES_MAX).then(|| readable.bytes(text, bytes))?
}
