//! Memory image of the agent's shared object, laid out by the injector instead of the target's
//! loader.
//!
//! The loader would need the target's allocator and locks, which a stopped thread may hold. It
//! would also occupy static TLS for good, and would have to find a file. Only files of heapr's own
//! build are accepted.

use std::collections::BTreeMap;

use heapr_known::machine::HERE;
use heapr_proc::page_bytes;

use crate::arch::RelocationKind;
use crate::error::{Error, Result};

/// A part of the image with its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Page-aligned offset in the image.
    pub(crate) offset: u64,
    /// Size in bytes, whole pages.
    pub(crate) bytes: u64,
    pub(crate) is_executable: bool,
    pub(crate) is_writable: bool,
}

/// The image, relocated for one address.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    exports: BTreeMap<String, u64>,
    relocations: Vec<Relocation>,
}

#[derive(Debug)]
struct Relocation {
    offset: u64,
    kind: u32,
    symbol: String,
    /// Whether the agent can do without the symbol: it uses it only when the loader loads it.
    is_weak: bool,
    addend: i64,
}

const DAMAGED: Error = Error::BadAgent { what: "an offset lies outside of it" };

fn slice(bytes: &[u8], offset: u64, count: u64) -> Result<&[u8]> {
    let start = usize::try_from(offset).map_err(|_| DAMAGED)?;
    let end = start.checked_add(usize::try_from(count).map_err(|_| DAMAGED)?).ok_or(DAMAGED)?;
    bytes.get(start..end).ok_or(DAMAGED)
}

fn u64_at(bytes: &[u8], offset: u64) -> Result<u64> {
    Ok(u64::from_le_bytes(slice(bytes, offset, 8)?.try_into().map_err(|_| DAMAGED)?))
}

fn u32_at(bytes: &[u8], offset: u64) -> Result<u32> {
    Ok(u32::from_le_bytes(slice(bytes, offset, 4)?.try_into().map_err(|_| DAMAGED)?))
}

fn u16_at(bytes: &[u8], offset: u64) -> Result<u16> {
    Ok(u16::from_le_bytes(slice(bytes, offset, 2)?.try_into().map_err(|_| DAMAGED)?))
}

fn string_at(bytes: &[u8], offset: u64) -> Result<String> {
    let start = usize::try_from(offset).map_err(|_| DAMAGED)?;
    let text = bytes.get(start..).ok_or(DAMAGED)?;
    let end = text.iter().position(|&byte| byte == 0).ok_or(DAMAGED)?;
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

impl Image {
    /// Lays out the segments of the file.
    pub(crate) fn load(file: &[u8]) -> Result<Self> {
        const PT_LOAD: u32 = 1;
        const PT_DYNAMIC: u32 = 2;
        const IMAGE_BYTES_MAX: u64 = 64 << 20;
        if !file.starts_with(b"\x7fELF\x02\x01") || u16_at(file, 18)? != HERE.elf_number {
            return Err(Error::BadAgent { what: "it is no shared object for this processor" });
        }
        let (headers, count) = (u64_at(file, 32)?, u16_at(file, 56)?);
        let mut segments = Vec::new();
        let mut loads = Vec::new();
        let mut dynamic = None;
        for number in 0..u64::from(count) {
            let header = headers + number * 56;
            let (kind, flags) = (u32_at(file, header)?, u32_at(file, header + 4)?);
            let (file_off, svma) = (u64_at(file, header + 8)?, u64_at(file, header + 16)?);
            let (file_bytes, memory_bytes) = (u64_at(file, header + 32)?, u64_at(file, header + 40)?);
            if svma.saturating_add(memory_bytes) > IMAGE_BYTES_MAX || file_bytes > memory_bytes {
                return Err(DAMAGED);
            }
            match kind {
                PT_LOAD => {
                    let offset = svma & !(page_bytes() - 1);
                    let bytes = (svma + memory_bytes).next_multiple_of(page_bytes()) - offset;
                    let (is_executable, is_writable) = (flags & 1 != 0, flags & 2 != 0);
                    segments.push(Segment { offset, bytes, is_executable, is_writable });
                    loads.push((file_off, svma, file_bytes));
                }
                PT_DYNAMIC => dynamic = Some((svma, memory_bytes)),
                _ => {}
            }
        }
        let end = segments.iter().map(|segment| segment.offset + segment.bytes).max().ok_or(DAMAGED)?;
        let mut bytes = vec![0; usize::try_from(end).map_err(|_| DAMAGED)?];
        for (file_off, svma, file_bytes) in loads {
            let start = usize::try_from(svma).map_err(|_| DAMAGED)?;
            let source = slice(file, file_off, file_bytes)?;
            bytes.get_mut(start..start + source.len()).ok_or(DAMAGED)?.copy_from_slice(source);
        }
        let mut image = Self { bytes, segments, exports: BTreeMap::new(), relocations: Vec::new() };
        image.read_dynamic(dynamic.ok_or(Error::BadAgent { what: "it has no dynamic section" })?)?;
        Ok(image)
    }

    fn read_dynamic(&mut self, (svma, section_bytes): (u64, u64)) -> Result<()> {
        let mut tags = BTreeMap::new();
        for entry in (0..section_bytes).step_by(16) {
            tags.insert(u64_at(&self.bytes, svma + entry)?, u64_at(&self.bytes, svma + entry + 8)?);
        }
        let tag = |number: u64| tags.get(&number).copied().unwrap_or(0);
        let (strings, symbols, gnu_hash) = (tag(5), tag(6), tag(0x6fff_fef5));
        let symbol = |index: u64| -> Result<(String, u64, u16)> {
            let at = symbols + index * 24;
            let name = string_at(&self.bytes, strings + u64::from(u32_at(&self.bytes, at)?))?;
            Ok((name, u64_at(&self.bytes, at + 8)?, u16_at(&self.bytes, at + 6)?))
        };
        let is_weak = |index: u64| -> Result<bool> {
            const STB_WEAK: u8 = 2;
            Ok(slice(&self.bytes, symbols + index * 24 + 4, 1)?[0] >> 4 == STB_WEAK)
        };
        let mut relocations = Vec::new();
        for (table, table_bytes) in [(tag(7), tag(8)), (tag(23), tag(2))] {
            for at in (table..table + table_bytes).step_by(24) {
                let info = u64_at(&self.bytes, at + 8)?;
                let name = if info >> 32 == 0 { String::new() } else { symbol(info >> 32)?.0 };
                relocations.push(Relocation {
                    offset: u64_at(&self.bytes, at)?,
                    kind: info as u32,
                    is_weak: !name.is_empty() && is_weak(info >> 32)?,
                    symbol: name,
                    addend: u64_at(&self.bytes, at + 16)?.cast_signed(),
                });
            }
        }
        // The symbols end where the hash table's chains end.
        let mut exports = BTreeMap::new();
        let (bucket_count, first, bloom_count) = (
            u32_at(&self.bytes, gnu_hash)?,
            u32_at(&self.bytes, gnu_hash + 4)?,
            u32_at(&self.bytes, gnu_hash + 8)?,
        );
        let buckets = gnu_hash + 16 + u64::from(bloom_count) * 8;
        let chains = buckets + u64::from(bucket_count) * 4;
        for number in 0..u64::from(bucket_count) {
            let mut index = u64::from(u32_at(&self.bytes, buckets + number * 4)?);
            if index < u64::from(first) {
                continue;
            }
            loop {
                let (name, value, section) = symbol(index)?;
                if section != 0 {
                    exports.insert(name, value);
                }
                if u32_at(&self.bytes, chains + (index - u64::from(first)) * 4)? & 1 != 0 {
                    break;
                }
                index += 1;
            }
        }
        self.exports = exports;
        self.relocations = relocations;
        Ok(())
    }

    /// Names of the functions that the agent needs from the target.
    pub(crate) fn imports(&self) -> Vec<String> {
        let needed = self.relocations.iter().filter(|relocation| !relocation.is_weak);
        let names = needed.map(|relocation| relocation.symbol.as_str());
        let mut names: Vec<String> = names
            .filter(|name| !name.is_empty() && !self.exports.contains_key(*name))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Offset of an exported name.
    pub(crate) fn export(&self, name: &str) -> Option<u64> {
        self.exports.get(name).copied()
    }

    /// Applies the relocations: the image will lie at `base_avma`, its thread slot at
    /// `tls_offset` from the thread pointer.
    pub(crate) fn relocate(
        &mut self,
        base_avma: u64,
        tls_offset: i64,
        import: impl Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        for relocation in &self.relocations {
            let symbol = || -> Result<u64> {
                let own = self.exports.get(&relocation.symbol).map(|offset| base_avma.wrapping_add(*offset));
                own.or_else(|| if relocation.is_weak { Some(0) } else { import(&relocation.symbol) })
                    .ok_or(Error::BadAgent { what: "it needs a function that the target does not have" })
            };
            let value = match RelocationKind::of(relocation.kind) {
                Some(RelocationKind::Relative) => base_avma.wrapping_add_signed(relocation.addend),
                Some(RelocationKind::Absolute) => symbol()?.wrapping_add_signed(relocation.addend),
                Some(RelocationKind::Slot) => symbol()?,
                // The agent has one thread-local word, so the addend is 0.
                Some(RelocationKind::ThreadOffset) => tls_offset.cast_unsigned(),
                None => return Err(Error::BadAgent { what: "it has a relocation of an unknown kind" }),
            };
            let at = usize::try_from(relocation.offset).map_err(|_| DAMAGED)?;
            let place = self.bytes.get_mut(at..at + 8).ok_or(DAMAGED)?;
            place.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }

    /// Reads a word of the image.
    pub(crate) fn word(&self, offset: u64) -> Result<u64> {
        u64_at(&self.bytes, offset)
    }

    /// Changes a word of the image.
    pub(crate) fn set_word(&mut self, offset: u64, value: u64) -> Result<()> {
        let at = usize::try_from(offset).map_err(|_| DAMAGED)?;
        self.bytes.get_mut(at..at + 8).ok_or(DAMAGED)?.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Returns bytes of the image.
    pub(crate) fn part(&self, offset: u64, count: u64) -> Result<&[u8]> {
        slice(&self.bytes, offset, count)
    }
}
