//! Unpacking of snapshots that are compressed (gzip, xz, zstd), in a tar or zip archive, or start
//! with a byte order mark.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek as _, SeekFrom};
use std::path::Path;

use super::archive_member::{
    BEGINNING_BYTES, Source, at_end, buffered, known, member, no_snapshot, pass, refused,
};
use super::zip_archive;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
/// Offset of the magic text in a tar archive.
const TAR_MAGIC_AT: usize = 257;
const TAR_BLOCK: usize = 512;
/// Largest number of nested layers: a compressed archive may hold a snapshot that is compressed
/// again.
const MAX_LAYERS: usize = 4;
/// Largest length of a name in an archive, in bytes.
const MAX_NAME_BYTES: u64 = 1 << 16;

/// Whether a file with this beginning is packed, rather than a snapshot's plain text.
pub(super) fn is_packed(beginning: &[u8]) -> bool {
    [GZIP, ZSTD, XZ, zip_archive::BEGINNING, BYTE_ORDER_MARK].iter().any(|magic| beginning.starts_with(magic))
        || is_tar(beginning)
}

fn is_tar(beginning: &[u8]) -> bool {
    beginning.get(TAR_MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

/// Opens a file; if it is compressed, the reader gives the contents.
///
/// # Errors
/// A file that cannot be read, or an archive without a snapshot.
pub fn open_unpacked(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    unpacked(heapr_files::readable(path)?)
}

/// Opens a file at an offset of its contents. `None`: it is compressed, and can be read from its
/// beginning only.
///
/// # Errors
/// Those of [`open_unpacked`].
pub fn open_unpacked_at(path: &Path, offset: u64) -> io::Result<Option<Box<dyn Read + Send>>> {
    if offset == 0 {
        return open_unpacked(path).map(Some);
    }
    let mut file = heapr_files::readable(path)?;
    let mut beginning = Vec::with_capacity(BEGINNING_BYTES);
    Read::by_ref(&mut file).take(BEGINNING_BYTES as u64).read_to_end(&mut beginning)?;
    if !file.metadata()?.is_file() || is_packed(&beginning) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(offset))?;
    Ok(Some(Box::new(file)))
}

/// Returns the text of the snapshot in `source`, unpacked.
pub(super) fn unpacked(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut source: Source = Box::new(BufReader::with_capacity(1 << 18, source));
    for _ in 0..MAX_LAYERS {
        let mut beginning = Vec::with_capacity(BEGINNING_BYTES);
        source.by_ref().take(BEGINNING_BYTES as u64).read_to_end(&mut beginning).or_else(at_end)?;
        let is = |magic: &[u8]| beginning.starts_with(magic);
        let (is_gzip, is_zstd, is_xz) = (is(GZIP), is(ZSTD), is(XZ));
        let (is_zip, is_marked, is_tar) =
            (is(zip_archive::BEGINNING), is(BYTE_ORDER_MARK), is_tar(&beginning));
        let mut whole = Cursor::new(beginning).chain(source);
        source = if is_gzip {
            buffered(flate2::bufread::MultiGzDecoder::new(whole))
        } else if is_zstd {
            buffered(zstd::stream::read::Decoder::with_buffer(whole)?)
        } else if is_xz {
            buffered(lzma_rust2::XzReader::new(whole, true))
        } else if is_zip {
            zip_archive::first_snapshot(whole)?
        } else if is_tar {
            tar_member(whole)?
        } else {
            whole.consume(if is_marked { BYTE_ORDER_MARK.len() } else { 0 });
            return Ok(Box::new(whole));
        };
    }
    Err(refused("it is packed too many times"))
}

/// Returns the first snapshot of a tar archive.
fn tar_member(mut archive: impl BufRead + Send + 'static) -> io::Result<Source> {
    let mut long_name = None;
    loop {
        let mut header = [0; TAR_BLOCK];
        if archive.read_exact(&mut header).is_err() || header[0] == 0 {
            return Err(no_snapshot());
        }
        let size =
            tar_number(&header[124..136]).ok_or_else(|| refused("a size in the archive is no number"))?;
        let padded = size.checked_next_multiple_of(TAR_BLOCK as u64).ok_or_else(no_snapshot)?;
        let short_name = header[..100].split(|&byte| byte == 0).next().unwrap_or_default();
        match header[156] {
            b'L' | b'x' if size <= MAX_NAME_BYTES => {
                let mut text = vec![0; padded as usize];
                archive.read_exact(&mut text)?;
                text.truncate(size as usize);
                let name = if header[156] == b'L' { Some(&text[..]) } else { pax_path(&text) };
                long_name = name
                    .map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec())
                    .or(long_name);
            }
            0 | b'0' => {
                let member = member(long_name.as_deref().unwrap_or(short_name));
                let (beginning, is_one) = known(member, &mut archive.by_ref().take(size))?;
                let seen = beginning.len() as u64;
                if is_one {
                    return Ok(Box::new(Cursor::new(beginning).chain(archive.take(size - seen))));
                }
                long_name = None;
                pass(&mut archive, padded - seen)?;
            }
            _ => {
                long_name = None;
                pass(&mut archive, padded)?;
            }
        }
    }
}

/// Parses a number in octal digits; from 8 GiB on it is binary.
fn tar_number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes: [u8; 8] = field[field.len() - 8..].try_into().ok()?;
        return Some(u64::from_be_bytes(bytes));
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

/// Returns the path in lines `LENGTH path=PATH`.
fn pax_path(text: &[u8]) -> Option<&[u8]> {
    let line =
        text.split(|&byte| byte == b'\n').find(|line| memchr::memmem::find(line, b" path=").is_some())?;
    let at = memchr::memmem::find(line, b" path=")?;
    Some(&line[at + 6..])
}
