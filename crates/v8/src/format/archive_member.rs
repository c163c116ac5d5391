//! What a member of an archive is, and the reading of one.

use std::io::{self, BufRead, BufReader, Read};

/// The longest beginning that tells what a content is, or how it is packed.
pub(super) const BEGINNING_BYTES: usize = 512;

pub(super) type Source = Box<dyn BufRead + Send>;

pub(super) fn buffered(reader: impl Read + Send + 'static) -> Source {
    Box::new(BufReader::with_capacity(1 << 16, reader))
}

/// What breaks off has what there is.
pub(super) fn at_end(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::UnexpectedEof { Ok(0) } else { Err(error) }
}

pub(super) fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(super) fn no_snapshot() -> io::Error {
    refused("the archive holds no .heapsnapshot, .heaptimeline, .heapprofile or .json")
}

/// What a member of an archive is by its name; what macOS adds beside each file is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Snapshot,
    /// Its beginning tells.
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

/// The beginning of a member's content, and whether it is that of a snapshot or a profile.
fn beginning_of(content: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    let mut beginning = Vec::with_capacity(BEGINNING_BYTES);
    content.take(BEGINNING_BYTES as u64).read_to_end(&mut beginning).or_else(at_end)?;
    let members: [&[u8]; 5] = [b"\"snapshot\"", b"\"nodes\"", b"\"edges\"", b"\"strings\"", b"\"head\""];
    let is_one = members.iter().any(|member| memchr::memmem::find(&beginning, member).is_some());
    Ok((beginning, is_one))
}

/// What was read of a member, and whether it is a snapshot.
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
