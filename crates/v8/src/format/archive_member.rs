//! Classification and reading of an archive's members.

use std::io::{self, BufRead, BufReader, Read};

/// Number of bytes that suffice to recognise a content or its compression.
pub(super) const BEGINNING_BYTES: usize = 512;

pub(super) type Source = Box<dyn BufRead + Send>;

pub(super) fn buffered(reader: impl Read + Send + 'static) -> Source {
    Box::new(BufReader::with_capacity(1 << 16, reader))
}

/// Treats a truncated content as the end of the content.
pub(super) fn at_end(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::UnexpectedEof { Ok(0) } else { Err(error) }
}

pub(super) fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(super) fn no_snapshot() -> io::Error {
    refused("the archive holds no .heapsnapshot, .heaptimeline, .heapprofile or .json")
}

/// Kind of an archive member by its name. The `._` files that macOS adds are of kind `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Snapshot,
    /// JSON file whose beginning decides.
    Json,
    Other,
}

pub(super) fn member(name: &[u8]) -> Member {
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
    match file.rsplit(|&byte| byte == b'.').next().unwrap_or_default() {
        _ if file.starts_with(b"._") => Member::Other,
        b"heapsnapshot" | b"heaptimeline" | b"heapprofile" | b"gz" | b"xz" | b"zst" => Member::Snapshot,
        b"json" => Member::Json,
        _ => Member::Other,
    }
}

/// Reads the beginning of a member's content. Returns the bytes, and whether they belong to a
/// snapshot or a profile.
fn beginning_of(content: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    let mut beginning = Vec::with_capacity(BEGINNING_BYTES);
    content.take(BEGINNING_BYTES as u64).read_to_end(&mut beginning).or_else(at_end)?;
    let members: [&[u8]; 5] = [b"\"snapshot\"", b"\"nodes\"", b"\"edges\"", b"\"strings\"", b"\"head\""];
    let is_one = members.iter().any(|member| memchr::memmem::find(&beginning, member).is_some());
    Ok((beginning, is_one))
}

/// Returns the bytes read from a member, and whether the member is a snapshot.
pub(super) fn known(member: Member, content: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    match member {
        Member::Snapshot => Ok((Vec::new(), true)),
        Member::Json => beginning_of(content),
        Member::Other => Ok((Vec::new(), false)),
    }
}

pub(super) fn pass(archive: &mut impl Read, count: u64) -> io::Result<()> {
    io::copy(&mut archive.take(count), &mut io::sink()).map(drop)
}
