//! Memory that the walk has read, stored for the lists that run through it once more.
//!
//! ```text
//! bytes   | slab | slab | slab | ...    their pages are in memory before the target is stopped: a page fault for each would take
//!           ^ each walker of a part of   longer than the reading
//!           ^ the heap fills its own
//! pieces  start_avma -> part of a slab
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::slice::ChunksMut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::error::Error;
use super::heap_memory::HeapMemory;
use heapr_proc::Mapping;

/// Room for the memory that is read of one heap.
#[derive(Debug, Default)]
pub struct ReadStore {
    bytes: Vec<u8>,
}

/// Size of a slab: a few of the largest windows.
const SLAB_BYTES: usize = 2 << 20;

impl ReadStore {
    /// Allocates room for a heap of about `heap_bytes`. Large blocks are not read whole. Memory
    /// beyond the room is read again when lists are followed.
    pub(super) fn with_room_for(heap_bytes: u64) -> Self {
        const MOST_BYTES: u64 = 64 << 20;
        if heap_bytes == 0 {
            return Self::default();
        }
        // Windows begin at chunks, overlap a little, and leave slabs half empty.
        let room = heap_bytes.saturating_add(heap_bytes / 4).min(MOST_BYTES) as usize;
        // Zeros would leave the pages unallocated.
        Self { bytes: vec![0xff; room + 4 * SLAB_BYTES] }
    }

    pub(super) fn slabs(&mut self) -> Slabs<'_> {
        Slabs { left: Mutex::new(self.bytes.chunks_mut(SLAB_BYTES)), were_short: AtomicBool::new(false) }
    }
}

/// The slabs that are still free.
#[derive(Debug)]
pub(super) struct Slabs<'s> {
    left: Mutex<ChunksMut<'s, u8>>,
    were_short: AtomicBool,
}

impl<'s> Slabs<'s> {
    fn take(&self) -> Option<&'s mut [u8]> {
        let slab = self.left.lock().unwrap_or_else(PoisonError::into_inner).next();
        if slab.is_none() {
            self.were_short.store(true, Relaxed);
        }
        slab
    }

    /// Whether the room was enough.
    pub(super) fn were_enough(&self) -> bool {
        !self.were_short.load(Relaxed)
    }
}

/// Stored memory by its first address.
#[derive(Debug, Default)]
pub(super) struct Pieces<'s>(BTreeMap<u64, &'s [u8]>);

impl<'s> Pieces<'s> {
    /// Stored memory from `address_avma` on.
    fn find(&self, address_avma: u64) -> Option<&'s [u8]> {
        let (start_avma, piece) = self.0.range(..=address_avma).next_back()?;
        piece.get(usize::try_from(address_avma - start_avma).ok()?..)
    }

    fn copy(&self, address_avma: u64, into: &mut [u8]) -> Option<()> {
        into.copy_from_slice(self.find(address_avma)?.get(..into.len())?);
        Some(())
    }

    fn word(&self, address_avma: u64) -> Option<u64> {
        self.find(address_avma)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

/// A target whose memory is read once, as far as there is room.
#[derive(Debug)]
pub(super) struct ReadOnce<'m, 's, M> {
    memory: &'m M,
    slabs: &'m Slabs<'s>,
    kept: RefCell<(&'s mut [u8], Pieces<'s>)>,
}

impl<'m, 's, M: HeapMemory> ReadOnce<'m, 's, M> {
    pub(super) fn new(memory: &'m M, slabs: &'m Slabs<'s>) -> Self {
        Self { memory, slabs, kept: RefCell::default() }
    }

    pub(super) fn into_pieces(self) -> Pieces<'s> {
        self.kept.into_inner().1
    }

    /// Room for `bytes`, if any is left.
    fn room(&self, slab: &mut &'s mut [u8], bytes: usize) -> Option<&'s mut [u8]> {
        if slab.len() < bytes {
            *slab = self.slabs.take()?;
        }
        let (room, rest) = std::mem::take(slab).split_at_mut_checked(bytes)?;
        *slab = rest;
        Some(room)
    }
}

impl<M: HeapMemory> HeapMemory for ReadOnce<'_, '_, M> {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        match self.kept.borrow().1.copy(address_avma, into) {
            Some(()) => into.len(),
            None => self.memory.read(address_avma, into),
        }
    }

    fn read_kept(&self, address_avma: u64, most_bytes: usize) -> Option<&[u8]> {
        let (slab, pieces) = &mut *self.kept.borrow_mut();
        if let Some(found) = pieces.find(address_avma).and_then(|found| found.get(..most_bytes)) {
            return Some(found);
        }
        let room = self.room(slab, most_bytes)?;
        let length = self.memory.read(address_avma, room);
        let found = &room[..length];
        // Pieces begin near the end of the one before, or elsewhere; a piece inside another one
        // would hide the rest of it. A piece that is replaced at the same address is shorter.
        pieces.0.insert(address_avma, found);
        Some(found)
    }

    fn word_at_hand(&self, address_avma: u64) -> Option<u64> {
        self.kept.borrow().1.word(address_avma)
    }

    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        self.memory.read_words(places, words);
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        self.memory.mappings()
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        self.memory.touched_pages(start_avma, page_count)
    }

    fn open(&self, path: &str) -> std::io::Result<std::fs::File> {
        self.memory.open(path)
    }
}

/// A target with some memory stored already.
#[derive(Debug)]
pub(super) struct Known<'m, 's, M> {
    memory: &'m M,
    pieces: Pieces<'s>,
}

impl<'m, 's, M: HeapMemory> Known<'m, 's, M> {
    pub(super) fn new(memory: &'m M, pieces: Pieces<'s>) -> Self {
        Self { memory, pieces }
    }
}

/// A target that runs again: no memory can be read.
#[derive(Debug)]
pub(super) struct Nothing;

impl HeapMemory for Nothing {
    fn read(&self, _address_avma: u64, _into: &mut [u8]) -> usize {
        0
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(Vec::new())
    }

    fn open(&self, _path: &str) -> std::io::Result<std::fs::File> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

impl<M: HeapMemory> HeapMemory for Known<'_, '_, M> {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        match self.pieces.copy(address_avma, into) {
            Some(()) => into.len(),
            None => self.memory.read(address_avma, into),
        }
    }

    fn word_at_hand(&self, address_avma: u64) -> Option<u64> {
        self.pieces.word(address_avma)
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        self.memory.mappings()
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        self.memory.touched_pages(start_avma, page_count)
    }

    fn open(&self, path: &str) -> std::io::Result<std::fs::File> {
        self.memory.open(path)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Memory in which each word is its address, up to `end_avma`.
    struct Counted {
        end_avma: u64,
        reads: AtomicUsize,
    }

    impl HeapMemory for Counted {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            self.reads.fetch_add(1, Relaxed);
            let length = (self.end_avma.saturating_sub(address_avma) as usize).min(into.len());
            for (offset, byte) in into[..length].iter_mut().enumerate() {
                let at = address_avma + offset as u64;
                *byte = (at & !7).to_le_bytes()[(at & 7) as usize];
            }
            length
        }

        fn mappings(&self) -> Result<Vec<Mapping>, Error> {
            Ok(Vec::new())
        }

        fn open(&self, _path: &str) -> std::io::Result<std::fs::File> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn what_was_read_is_at_hand_and_what_finds_no_room_is_read_again() {
        let memory = Counted { end_avma: 0x20_1800, reads: AtomicUsize::new(0) };
        let mut store = ReadStore { bytes: vec![0; 0x2800] };
        let slabs = store.slabs();
        let once = ReadOnce::new(&memory, &slabs);
        let mut bytes = vec![0; 0x1000];
        assert_eq!(once.read_kept(0x10_0000, 0x1000).map(<[u8]>::len), Some(0x1000));
        assert_eq!(once.read(0x10_0000, &mut bytes[..64]), 64);
        assert_eq!((once.word_at_hand(0x10_0ff8), once.word_at_hand(0x10_1000)), (Some(0x10_0ff8), None));
        assert_eq!(once.word_at_hand(0x10_0ffc), None);
        assert_eq!(memory.reads.load(Relaxed), 1);
        // A read ends at the end of readable memory.
        assert_eq!(once.read_kept(0x20_1000, 0x1000).map(<[u8]>::len), Some(0x800));
        assert_eq!((once.word_at_hand(0x20_17f8), once.word_at_hand(0x20_1800)), (Some(0x20_17f8), None));
        assert!(slabs.were_enough());
        // The room is enough for half of it.
        assert_eq!(once.read_kept(0x10_4000, 0x1000), None);
        assert!(!slabs.were_enough());
        assert_eq!(once.read(0x10_4000, &mut bytes), 0x1000);
        assert_eq!(once.word_at_hand(0x10_4000), None);
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), 0x10_4000);
        assert_eq!(memory.reads.load(Relaxed), 3);
        let known = Known::new(&memory, once.into_pieces());
        assert_eq!(known.read(0x10_0010, &mut bytes[..8]), 8);
        assert_eq!((bytes[0], known.word_at_hand(0x10_0008)), (0x10, Some(0x10_0008)));
        assert_eq!(memory.reads.load(Relaxed), 3);
        assert_eq!(known.read(0x10_4000, &mut bytes[..8]), 8);
        assert_eq!(memory.reads.load(Relaxed), 4);
        let gone = Known::new(&Nothing, known.pieces);
        assert_eq!((gone.read(0x10_0010, &mut bytes[..8]), gone.read(0x10_4000, &mut bytes[..8])), (8, 0));
    }
}
