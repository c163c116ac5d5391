//! The plan, made before the stop: libc, its version, its `main_arena` and its parameters.
//!
//! Stripped libraries have symbols for neither, so both are found by their contents. An arena's
//! bins point to themselves or to chunks that point back. Its ring of arenas begins with itself or
//! with a page-aligned heap.

use heapr_known::glibc::{self, ARENA_HEAP_BYTES};

use super::allocator;
use super::arena::{self, ArenaShape};
use super::error::Error;
use super::heap_memory::HeapMemory;
use super::layout::{Layout, Version};
use super::mappings;
use super::parameters;
use super::read_store::ReadStore;
use heapr_proc::Mapping;

/// Facts that a walk needs; valid as long as the process runs the same program.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) version: Version,
    pub(super) layout: Layout,
    /// One entry for each libc of the process: `dlmopen` loads more than one.
    pub(super) heaps: Vec<MainHeap>,
}

/// Addresses in one libc's data.
#[derive(Debug, Clone)]
pub(super) struct MainHeap {
    pub(super) arena_avma: u64,
    pub(super) parameters_avma: Option<u64>,
}

impl Plan {
    /// Finds libc and its arenas in `memory`. The target may run.
    pub fn make(memory: &impl HeapMemory) -> Result<Self, Error> {
        let mappings = memory.mappings()?;
        allocator::check_is_glibc(memory, &mappings)?;
        let libraries = libraries(&mappings);
        let first = libraries.first().ok_or(Error::NoLibc)?;
        let path = first.mappings[0].name.clone();
        let version = version(memory, first).ok_or(Error::UnknownVersion { path })?;
        let layout = Layout::of(version).ok_or(Error::UnsupportedVersion { found: version })?;
        let mut heaps = Vec::new();
        for (index, library) in libraries.iter().enumerate() {
            match main_heap(memory, library, &layout, &mappings) {
                Ok(heap) => heaps.push(heap),
                // A second libc that was never used is ignored.
                Err(error) if index == 0 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self { version, layout, heaps })
    }

    /// Allocates room for reading the heap at its present size. It is made before the stop, as its
    /// pages are written at once.
    pub fn room(&self, memory: &impl HeapMemory) -> ReadStore {
        let mut heap_bytes = 0_u64;
        for heap in &self.heaps {
            // The target runs: apparent damage may be a change in progress.
            let arenas = arena::ring(memory, &self.layout, heap.arena_avma, &mut Vec::new());
            let own = arenas.iter().map(|arena| arena.system_bytes);
            heap_bytes = own.fold(heap_bytes, u64::saturating_add);
        }
        // The arenas' own sizes are untrusted: the mapped bytes bound them.
        let mapped = memory.mappings().unwrap_or_default();
        let bytes_of = |is_such: fn(&&Mapping) -> bool| {
            mapped.iter().filter(is_such).map(Mapping::bytes).fold(0, u64::saturating_add)
        };
        let mapped_bytes = bytes_of(|mapping| mapping.is_writable && !mapping.is_shared);
        // Arenas that are being changed may be missed: memory that looks like heaps is the lower
        // bound.
        let heaps_bytes = bytes_of(|mapping| {
            let may_be_heap = mapping.start_avma.is_multiple_of(ARENA_HEAP_BYTES);
            mapping.is_writable
                && (mappings::is_brk(mapping) || mappings::is_private_anonymous(mapping) && may_be_heap)
        });
        ReadStore::with_room_for(heap_bytes.min(mapped_bytes).max(heaps_bytes))
    }

    /// The version of the target's libc.
    pub fn version(&self) -> Version {
        self.version
    }
}

/// Mappings of one loaded libc, with the anonymous one behind its data.
struct Library<'a> {
    mappings: Vec<&'a Mapping>,
}

fn is_libc(mapping: &Mapping) -> bool {
    mapping.inode != 0 && glibc::is_library(mappings::file_name(mapping))
}

/// Groups neighbouring mappings of the same libc.
fn libraries(mappings: &[Mapping]) -> Vec<Library<'_>> {
    let mut found: Vec<Library<'_>> = Vec::new();
    let mut previous: Option<&Mapping> = None;
    for mapping in mappings {
        let continues = previous.is_some_and(|previous| {
            let is_bss = previous.is_writable && mappings::is_private_anonymous(mapping);
            previous.end_avma == mapping.start_avma && (previous.inode == mapping.inode || is_bss)
        });
        let is_part = is_libc(mapping) || (continues && mappings::is_private_anonymous(mapping));
        match found.last_mut() {
            Some(library) if is_part && continues => library.mappings.push(mapping),
            _ if is_libc(mapping) => found.push(Library { mappings: vec![mapping] }),
            _ => {
                previous = None;
                continue;
            }
        }
        previous = Some(mapping);
    }
    found
}

/// Reads the readable start of `mapping`.
fn content(memory: &impl HeapMemory, mapping: &Mapping) -> Vec<u8> {
    /// Largest number of bytes read; it bounds hostile targets. libc's largest segment has under 2
    /// MiB.
    const MOST_BYTES: u64 = 16 << 20;
    let mut bytes = vec![0; mapping.bytes().min(MOST_BYTES) as usize];
    let count = memory.read(mapping.start_avma, &mut bytes);
    bytes.truncate(count);
    bytes
}

/// Searches the library's constants for its banner: "GNU C Library (…) stable release version
/// 2.36."
fn version(memory: &impl HeapMemory, library: &Library<'_>) -> Option<Version> {
    let constants = library.mappings.iter().filter(|mapping| !mapping.is_writable && mapping.is_readable);
    constants.filter_map(|mapping| version_in(&content(memory, mapping))).next()
}

fn version_in(bytes: &[u8]) -> Option<Version> {
    const BANNER: &[u8] = b"GNU C Library (";
    const VERSION: &[u8] = b" version ";
    let at = bytes.windows(BANNER.len()).position(|window| window == BANNER)?;
    let line = &bytes[at..bytes.len().min(at + 256)];
    let number = line.windows(VERSION.len()).position(|window| window == VERSION)? + VERSION.len();
    let number = line[number..].split(|byte| !byte.is_ascii_digit() && *byte != b'.').next()?;
    let mut parts = std::str::from_utf8(number).ok()?.split('.');
    Some(Version { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
}

/// Finds the main arena and the parameters in the library's data.
fn main_heap(
    memory: &impl HeapMemory,
    library: &Library<'_>,
    layout: &Layout,
    mappings: &[Mapping],
) -> Result<MainHeap, Error> {
    let data = library.mappings.iter().filter(|mapping| mapping.is_writable);
    let data: Vec<(u64, Vec<u8>)> =
        data.map(|mapping| (mapping.start_avma, content(memory, mapping))).collect();
    // The arena may lie across the border of data and bss.
    let joined = join(data);
    let mut candidates = 0;
    let mut untouched = None;
    // Empty bins look alike at shifted starts: an assumed start that is some bins off has few
    // faults, too. The true start has the fewest.
    let mut best: Option<(usize, MainHeap)> = None;
    for (start_avma, bytes) in &joined {
        for offset in (0..bytes.len().saturating_sub(layout.state.bytes - 1)).step_by(8) {
            let arena_avma = start_avma + offset as u64;
            let bytes = &bytes[offset..offset + layout.state.bytes];
            if !arena::has_plausible_ring(bytes, arena_avma, layout) {
                continue;
            }
            candidates += 1;
            let heap =
                || MainHeap { arena_avma, parameters_avma: parameters::find(&joined, layout, mappings) };
            match arena::shape(memory, layout, bytes, arena_avma) {
                ArenaShape::Initialised { faults } => {
                    if best.as_ref().is_none_or(|(least, _)| faults < *least) {
                        best = Some((faults, heap()));
                    }
                }
                ArenaShape::Untouched => untouched = untouched.or(Some(heap())),
                ArenaShape::Other => {}
            }
        }
    }
    let path = library.mappings[0].name.clone();
    best.map(|(_, heap)| heap).or(untouched).ok_or(Error::NoMainArena { path, candidates })
}

/// Joins neighbouring pieces.
fn join(pieces: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
    for (start_avma, bytes) in pieces {
        match joined.last_mut() {
            Some((first_avma, before)) if *first_avma + before.len() as u64 == start_avma => {
                before.extend_from_slice(&bytes)
            }
            _ => joined.push((start_avma, bytes)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_gives_the_version() {
        let text = b"\0xGNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\nCopyright";
        assert_eq!(version_in(text), Some(Version { major: 2, minor: 36 }));
        assert_eq!(version_in(b"GNU C Library (x) stable release version"), None);
        assert_eq!(version_in(b"GNU C Library ("), None);
    }
}
