//! First snapshot of a zip archive, read from the start, because the archive may come from a pipe.
//!
//! ```text
//! PK34, method, sizes, name | content | PK34 … | directory        as most programs write it
//! PK34, method, 0, name | content | PK78, sizes | PK34 …          as it is written to a pipe
//! ```

use std::io::{self, BufRead, Cursor, Read};

use flate2::bufread::DeflateDecoder;

use super::archive_member::{Member, Source, buffered, known, member, no_snapshot, pass, refused};

/// Magic bytes at the start of each member.
pub(super) const BEGINNING: &[u8] = b"PK\x03\x04";
/// Optional magic bytes before the sizes that follow a content.
const SIZES_BEHIND: &[u8] = b"PK\x07\x08";
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

pub(super) fn first_snapshot(mut archive: impl BufRead + Send + 'static) -> io::Result<Source> {
    loop {
        let mut header = [0; 30];
        if archive.read_exact(&mut header).is_err() || !header.starts_with(BEGINNING) {
            return Err(no_snapshot());
        }
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (flags, method) = (short(6), short(8));
        let mut name = vec![0; usize::from(short(26))];
        let mut extra = vec![0; usize::from(short(28))];
        archive.read_exact(&mut name)?;
        archive.read_exact(&mut extra)?;
        let packed_bytes = match u32::from_le_bytes([header[18], header[19], header[20], header[21]]) {
            u32::MAX => {
                zip64_packed_bytes(&extra).ok_or_else(|| refused("a size in the archive is missing"))?
            }
            bytes => u64::from(bytes),
        };
        if flags & 1 != 0 {
            return Err(refused("the archive is encrypted"));
        }
        // Only compressed content marks its own end.
        let has_sizes_behind = flags & 8 != 0;
        match (method, member(&name)) {
            (STORED, _) if has_sizes_behind && packed_bytes == 0 => {
                return Err(refused(
                    "the archive was written to a pipe without being packed: unpack it first",
                ));
            }
            (STORED, member) => {
                let mut content = archive.take(packed_bytes);
                let (beginning, is_one) = known(member, &mut content)?;
                if is_one {
                    return Ok(Box::new(Cursor::new(beginning).chain(content)));
                }
                pass(&mut content, u64::MAX)?;
                archive = content.into_inner();
            }
            (DEFLATED, member) if member != Member::Other || has_sizes_behind => {
                let mut content = DeflateDecoder::new(archive);
                let (beginning, is_one) = known(member, &mut content)?;
                if is_one {
                    return Ok(buffered(Cursor::new(beginning).chain(content)));
                }
                pass(&mut content, u64::MAX)?;
                archive = content.into_inner();
            }
            (_, Member::Other) if !has_sizes_behind => pass(&mut archive, packed_bytes)?,
            _ => return Err(refused("the archive is packed in a way that is not known")),
        }
        if has_sizes_behind {
            pass_sizes(&mut archive, zip64_packed_bytes(&extra).is_some())?;
        }
    }
}

/// Skips a checksum and two sizes, which take 8 bytes each in large archives.
fn pass_sizes(archive: &mut impl BufRead, is_large: bool) -> io::Result<()> {
    let mut first = [0; 4];
    archive.read_exact(&mut first)?;
    let rest = if first == SIZES_BEHIND { 12 } else { 8 };
    pass(archive, if is_large { rest + 8 } else { rest })
}

/// Returns the second number of the field that holds sizes beyond 32 bits.
fn zip64_packed_bytes(extra: &[u8]) -> Option<u64> {
    let mut rest = extra;
    while let [a, b, c, d, after @ ..] = rest {
        let (id, length) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
        let field = after.get(..length)?;
        if id == 1 {
            return Some(u64::from_le_bytes(field.get(8..16)?.try_into().ok()?));
        }
        rest = &after[length..];
    }
    None
}
