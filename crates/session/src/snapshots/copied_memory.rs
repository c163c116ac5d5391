//! Memory copied out of a copy of a process, which can then end before the search begins.
//!
//! While a copy lives, the kernel copies each page that the process writes to, and searching takes
//! many times as long as reading.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heapr_glibc_heap::{Error as RundownError, HeapMemory};
use heapr_native::{Memory, PACKED_PAGE_BYTES, PackedPages, is_looked_through};
use heapr_proc::page_bytes;
use heapr_proc::{Mapping, mappings, own_pid};

use crate::memory_room;

/// Bytes read per call.
const PIECE_BYTES: u64 = 16 << 20;
/// Bytes read per call for packing: what the processor's cache has room for.
const PACKED_PIECE_BYTES: u64 = 1 << 20;
/// Divisor of the free memory: the copied memory takes at most this part of it.
const ROOM_SHARE: u64 = 4;
/// Largest number of open files: names of types and tables of virtual functions are in few.
const FILES_MAX: usize = 64;

/// Number of unpacked pages that are cached; a power of two.
const UNPACKED_PAGES: usize = 64;

/// Form in which copied memory is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is: each word can be read in place.
    Plain,
    /// Packed: about a third of its size where it has objects.
    Packed,
}

/// Copied memory of a process.
#[derive(Debug)]
pub(crate) struct CopiedMemory {
    /// Copied pieces, by address.
    pieces: Vec<Piece>,
    /// Pages that were unpacked for reads of less than a page, by the low bits of their numbers.
    unpacked: Mutex<HashMap<u64, UnpackedPage>>,
    mappings: Vec<Mapping>,
    /// Root directory of the process.
    root: File,
    /// Files from which unwritten pages are read; `None`: the file does not exist any more.
    files: Mutex<HashMap<String, Option<File>>>,
}

/// Page of a packed piece.
#[derive(Debug)]
struct UnpackedPage {
    number: u64,
    bytes: Box<[u8; PACKED_PAGE_BYTES]>,
}

impl Default for UnpackedPage {
    fn default() -> Self {
        Self { number: u64::MAX, bytes: Box::new([0; PACKED_PAGE_BYTES]) }
    }
}

#[derive(Debug)]
struct Piece {
    start_avma: u64,
    byte_count: u64,
    bytes: Bytes,
}

/// Bytes of a piece.
#[derive(Debug)]
enum Bytes {
    Plain(Vec<u8>),
    Packed(PackedPages),
}

impl Piece {
    /// Piece of the first `count` bytes of `room`, which is taken where it can be used as it is.
    fn of(start_avma: u64, room: &mut Vec<u8>, count: usize, form: Form) -> Self {
        let bytes = match form {
            Form::Plain => {
                let mut bytes = std::mem::take(room);
                bytes.truncate(count);
                Bytes::Plain(bytes)
            }
            Form::Packed => Bytes::Packed(PackedPages::of(&room[..count])),
        };
        Self { start_avma, byte_count: count as u64, bytes }
    }

    fn end_avma(&self) -> u64 {
        self.start_avma + self.byte_count
    }
}

/// Memory that can be copied.
pub(crate) trait WrittenMemory: Memory {
    /// Root directory of the owner of the memory.
    fn root(&self) -> PathBuf;
}

impl CopiedMemory {
    /// Copies all memory to be searched. `None`: written pages are unknown, memory is short, or
    /// `goes_on` returned false.
    pub(crate) fn of(
        copy: &impl WrittenMemory,
        mappings: &[Mapping],
        form: Form,
        goes_on: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let room = memory_room::of_process(own_pid()).map_or(u64::MAX, |room| room.bytes / ROOM_SHARE);
        let room = memory_room::of_limits(own_pid()).map_or(room, |own| room.min(own.bytes / ROOM_SHARE));
        let ranges = wanted(copy, mappings)?;
        if ranges.iter().map(|(start_avma, end_avma)| end_avma - start_avma).sum::<u64>() > room {
            return None;
        }
        let root = File::open(copy.root()).ok()?;
        let mut pieces = Vec::with_capacity(ranges.len());
        let mut room = Vec::new();
        for (start_avma, end_avma) in ranges {
            let mut at_avma = start_avma;
            while at_avma < end_avma {
                if !goes_on() {
                    return None;
                }
                let wanted_bytes = (end_avma - at_avma).min(piece_bytes(form));
                if room.len() < wanted_bytes as usize {
                    room = vec![0; wanted_bytes as usize];
                }
                let count = copy.read(at_avma, &mut room[..wanted_bytes as usize]);
                let is_whole = count as u64 == wanted_bytes;
                if count > 0 {
                    pieces.push(Piece::of(at_avma, &mut room, count, form));
                }
                // Reading continues behind an unreadable page.
                at_avma = match is_whole {
                    true => at_avma + wanted_bytes,
                    false => (at_avma + count as u64) / page_bytes() * page_bytes() + page_bytes(),
                };
            }
        }
        Some(Self {
            pieces,
            unpacked: Mutex::default(),
            mappings: mappings.to_vec(),
            root,
            files: Mutex::default(),
        })
    }

    /// Path of a file of the process, valid as long as this exists, even if the process has ended.
    pub(crate) fn local(&self, path: &str) -> PathBuf {
        Path::new("/proc/self/fd").join(self.root.as_raw_fd().to_string()).join(path.trim_start_matches('/'))
    }

    /// Returns the copied piece around an address and the offset in it, or else the distance to the
    /// next copied byte.
    fn find(&self, at_avma: u64) -> Result<(&Piece, usize), u64> {
        let behind = self.pieces.partition_point(|piece| piece.end_avma() <= at_avma);
        let Some(piece) = self.pieces.get(behind) else { return Err(u64::MAX - at_avma) };
        match at_avma.checked_sub(piece.start_avma) {
            Some(offset) => Ok((piece, offset as usize)),
            None => Err(piece.start_avma - at_avma),
        }
    }

    /// Reads from a piece. Returns the number of bytes, at least one if there is room for any.
    fn read_piece(&self, piece: &Piece, offset: usize, into: &mut [u8]) -> usize {
        let count = into.len().min(piece.byte_count as usize - offset);
        match &piece.bytes {
            Bytes::Plain(bytes) => {
                into[..count].copy_from_slice(&bytes[offset..offset + count]);
                count
            }
            Bytes::Packed(pages) => {
                let (number, within) = (offset / PACKED_PAGE_BYTES, offset % PACKED_PAGE_BYTES);
                if within == 0
                    && let Some(page) = into[..count].first_chunk_mut::<PACKED_PAGE_BYTES>()
                {
                    pages.read(number, page);
                    return PACKED_PAGE_BYTES;
                }
                let count = count.min(PACKED_PAGE_BYTES - within);
                let page = piece.start_avma / PACKED_PAGE_BYTES as u64 + number as u64;
                let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
                let known = unpacked.entry(page % UNPACKED_PAGES as u64).or_default();
                if known.number != page {
                    pages.read(number, &mut known.bytes);
                    known.number = page;
                }
                into[..count].copy_from_slice(&known.bytes[within..within + count]);
                count
            }
        }
    }

    /// Reads pages that were never written: zeros, or the file's content.
    fn read_unwritten(&self, at_avma: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = mappings::find(&self.mappings, at_avma) else { return 0 };
        let count = (mapping.end_avma - at_avma).min(into.len() as u64) as usize;
        let into = &mut into[..count];
        if mapping.inode == 0 {
            into.fill(0);
            return if mapping.is_shared || !is_looked_through(mapping) { 0 } else { count };
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= FILES_MAX && !files.contains_key(&mapping.name) {
            files.clear();
        }
        let file = files.entry(mapping.name.clone()).or_insert_with(|| {
            // A program below a changed root has names of files from outside of it.
            let file = File::open(self.local(&mapping.name)).or_else(|_| File::open(&mapping.name)).ok()?;
            // Another file may have the path by now.
            let facts = file.metadata().ok()?;
            (facts.is_file() && facts.ino() == mapping.inode).then_some(file)
        });
        let file_off = mapping.file_off + (at_avma - mapping.start_avma);
        let count = file.as_ref().map(|file| file.read_at(into, file_off));
        count.and_then(Result::ok).unwrap_or(0)
    }

    fn read_all(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let at_avma = address_avma.wrapping_add(done as u64);
            let rest = &mut into[done..];
            let count = match self.find(at_avma) {
                Ok((piece, offset)) => self.read_piece(piece, offset, rest),
                Err(gap) => {
                    let until = gap.min(rest.len() as u64) as usize;
                    self.read_unwritten(at_avma, &mut rest[..until])
                }
            };
            if count == 0 {
                break;
            }
            done += count;
        }
        done
    }

    fn parts(&self, start_avma: u64, end_avma: u64) -> Vec<(u64, u64)> {
        let first = self.pieces.partition_point(|piece| piece.end_avma() <= start_avma);
        let within = self.pieces[first..].iter().take_while(|piece| piece.start_avma < end_avma);
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for piece in within {
            let part = (piece.start_avma.max(start_avma), piece.end_avma().min(end_avma));
            match parts.last_mut() {
                Some(last) if last.1 == part.0 => last.1 = part.1,
                _ => parts.push(part),
            }
        }
        parts
    }
}

fn piece_bytes(form: Form) -> u64 {
    match form {
        Form::Plain => PIECE_BYTES,
        Form::Packed => PACKED_PIECE_BYTES,
    }
}

/// Ranges to be copied, by address, without overlaps.
fn wanted(copy: &impl Memory, mappings: &[Mapping]) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    for mapping in mappings.iter().filter(|mapping| is_looked_through(mapping)) {
        let range = (mapping.start_avma, mapping.end_avma);
        match mapping.is_shared {
            // Writes of other processes count, too.
            true if mapping.is_writable => ranges.extend(copy.shared_parts(mapping)),
            true => {}
            false => ranges.extend(copy.written_parts(range.0, range.1)?),
        }
    }
    ranges.sort_unstable();
    Some(ranges)
}

impl Memory for CopiedMemory {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.read_all(address_avma, into)
    }

    fn piece_at(&self, address_avma: u64) -> Option<(u64, &[u8])> {
        let behind = self.pieces.partition_point(|piece| piece.end_avma() <= address_avma);
        let piece = self.pieces.get(behind).filter(|piece| piece.start_avma <= address_avma)?;
        match &piece.bytes {
            Bytes::Plain(bytes) => Some((piece.start_avma, bytes)),
            Bytes::Packed(_) => None,
        }
    }

    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        Some(self.parts(start_avma, end_avma))
    }
}

impl HeapMemory for CopiedMemory {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.read_all(address_avma, into)
    }

    fn mappings(&self) -> Result<Vec<Mapping>, RundownError> {
        Ok(self.mappings.clone())
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        let pages = (0..page_count as u64).map(|page| start_avma + page * page_bytes());
        Some(pages.map(|page_avma| self.find(page_avma).is_ok()).collect())
    }

    fn open(&self, path: &str) -> std::io::Result<File> {
        File::open(self.local(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory in which each byte is the number of its page; the third page cannot be read.
    struct Pages;

    impl Memory for Pages {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            let bad_avma = 3 * page_bytes();
            let whole = match address_avma {
                at if at / page_bytes() == 3 => 0,
                at if at < bad_avma => into.len().min((bad_avma - at) as usize),
                _ => into.len(),
            };
            for (offset, byte) in into[..whole].iter_mut().enumerate() {
                *byte = ((address_avma + offset as u64) / page_bytes()) as u8;
            }
            whole
        }

        fn written_parts(&self, start_avma: u64, _: u64) -> Option<Vec<(u64, u64)>> {
            let pages = |first: u64, last: u64| (first * page_bytes(), last * page_bytes());
            Some(if start_avma == page_bytes() { vec![pages(1, 5), pages(6, 7)] } else { Vec::new() })
        }
    }

    impl WrittenMemory for Pages {
        fn root(&self) -> PathBuf {
            "/".into()
        }
    }

    fn mapping(first_page: u64, end_page: u64, path: &Path) -> Mapping {
        let inode = path.metadata().map_or(0, |facts| facts.ino());
        Mapping {
            start_avma: first_page * page_bytes(),
            end_avma: end_page * page_bytes(),
            is_readable: true,
            is_writable: true,
            is_executable: false,
            is_shared: false,
            file_off: 0,
            inode,
            name: path.to_string_lossy().into_owned(),
        }
    }

    #[test]
    fn what_was_read_out_and_what_nobody_wrote_to_is_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![77; page_bytes() as usize]).unwrap();
        let mappings = [mapping(1, 9, Path::new("")), mapping(20, 22, file.path())];
        for form in [Form::Plain, Form::Packed] {
            check(&CopiedMemory::of(&Pages, &mappings, form, &|| true).unwrap());
        }
        assert!(CopiedMemory::of(&Pages, &mappings, Form::Plain, &|| false).is_none());
    }

    fn check(kept: &CopiedMemory) {
        let page = |number: u64| {
            let mut bytes = vec![200; page_bytes() as usize];
            let count = kept.read_all(number * page_bytes(), &mut bytes);
            (count, bytes[0])
        };
        let whole = page_bytes() as usize;
        assert_eq!((page(1), page(2), page(4)), ((whole, 1), (whole, 2), (whole, 4)));
        // Never written: zeros, or the file's content up to its end.
        assert_eq!((page(5), page(6), page(8)), ((whole, 0), (whole, 6), (whole, 0)));
        assert_eq!((page(20), page(21).0), ((whole, 77), 0));
        assert_eq!(page(9).0, 0);
        let part = |first: u64, last: u64| (first * page_bytes(), last * page_bytes());
        assert_eq!(kept.parts(0, 30 * page_bytes()), [part(1, 3), part(4, 5), part(6, 7)]);
        let mut over = vec![0; 3 * whole];
        assert_eq!(kept.read_all(4 * page_bytes(), &mut over), 3 * whole);
        assert_eq!((over[0], over[whole], over[2 * whole]), (4, 0, 6));
        // From within a page to within the next.
        let mut over = vec![0; 100];
        assert_eq!(kept.read_all(2 * page_bytes() - 50, &mut over), 100);
        assert_eq!((over[0], over[49], over[50], over[99]), (1, 1, 2, 2));
    }
}
