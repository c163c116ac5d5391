//! Cached reading of a process's memory, a word at a time.

use std::cell::{Cell, RefCell};

use heapr_native::Memory;

const PAGE_BYTES: usize = 4096;
/// Number of cached pages; a power of two.
const SLOTS: usize = 512;
/// Tag of a slot that caches no page.
const EMPTY: u64 = u64::MAX;
/// Size of the part of the memory that has one slot for a piece.
const PIECE_PART_BYTES: u64 = 1 << 20;
/// Number of slots for pieces; a power of two.
const PIECE_SLOTS: usize = 256;

/// Memory with a cache of its pages. A page that cannot be read is cached, too. Pieces that are in
/// heapr's own memory are read in place.
pub(crate) struct Pages<'m> {
    memory: &'m dyn Memory,
    /// Start and bytes of the piece that was found last for each part of the memory.
    pieces: Vec<Cell<(u64, &'m [u8])>>,
    /// Number of the page in each slot, and its readable bytes.
    tags: Vec<Cell<(u64, usize)>>,
    bytes: RefCell<Vec<u8>>,
    /// Number of words that walks may still visit.
    room: Cell<u64>,
}

impl std::fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl<'m> Pages<'m> {
    /// Creates an empty cache.
    pub(crate) fn of(memory: &'m dyn Memory) -> Self {
        Self {
            memory,
            pieces: vec![Cell::new((0, [].as_slice())); PIECE_SLOTS],
            tags: vec![Cell::new((EMPTY, 0)); SLOTS],
            bytes: RefCell::new(vec![0; SLOTS * PAGE_BYTES]),
            room: Cell::new(u64::MAX),
        }
    }

    /// Limits the number of words that walks may visit. Tables that overlap, as those of memory
    /// that lies may, would take any time else.
    pub(crate) fn limit(&self, words: u64) {
        self.room.set(words);
    }

    /// Counts words of a walk; returns whether the walk may go on.
    pub(crate) fn spend(&self, words: u64) -> bool {
        let left = self.room.get();
        self.room.set(left.saturating_sub(words));
        left >= words
    }

    /// Whether a walk was ended by the limit.
    pub(crate) fn is_spent(&self) -> bool {
        self.room.get() == 0
    }

    /// Slot of the piece that an address may lie in.
    fn piece_slot(&self, address_avma: u64) -> &Cell<(u64, &'m [u8])> {
        &self.pieces[(address_avma / PIECE_PART_BYTES) as usize % PIECE_SLOTS]
    }

    /// Bytes from an address on in the piece that its slot has; empty without one.
    fn rest_of_piece(&self, address_avma: u64) -> &'m [u8] {
        let (start_avma, bytes) = self.piece_slot(address_avma).get();
        let offset = address_avma.checked_sub(start_avma);
        offset.and_then(|offset| bytes.get(usize::try_from(offset).ok()?..)).unwrap_or_default()
    }

    /// Calls `take` with the readable bytes of the piece or page from `address_avma` on.
    fn with_rest<T>(&self, address_avma: u64, take: impl FnOnce(&[u8]) -> T) -> T {
        let rest = self.rest_of_piece(address_avma);
        if !rest.is_empty() {
            return take(rest);
        }
        let page = address_avma / PAGE_BYTES as u64;
        let slot = page as usize % SLOTS;
        let start = slot * PAGE_BYTES;
        let (tag, mut count) = self.tags[slot].get();
        if tag != page {
            if let Some(piece) = self.memory.piece_at(address_avma) {
                self.piece_slot(address_avma).set(piece);
                let rest = self.rest_of_piece(address_avma);
                if !rest.is_empty() {
                    return take(rest);
                }
            }
            let mut bytes = self.bytes.borrow_mut();
            count = self.memory.read(page * PAGE_BYTES as u64, &mut bytes[start..start + PAGE_BYTES]);
            count = count.min(PAGE_BYTES);
            self.tags[slot].set((page, count));
        }
        let offset = address_avma as usize % PAGE_BYTES;
        let bytes = self.bytes.borrow();
        take(bytes[start..start + count].get(offset..).unwrap_or_default())
    }

    /// Fills `into`; returns whether all of it could be read.
    pub(crate) fn read(&self, address_avma: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let Some(at_avma) = address_avma.checked_add(done as u64) else { return false };
            let count = self.with_rest(at_avma, |rest| {
                let count = rest.len().min(into.len() - done);
                into[done..done + count].copy_from_slice(&rest[..count]);
                count
            });
            if count == 0 {
                return false;
            }
            done += count;
        }
        true
    }

    fn array<const N: usize>(&self, address_avma: u64) -> Option<[u8; N]> {
        let at_once = self.with_rest(address_avma, |rest| rest.first_chunk::<N>().copied());
        at_once.or_else(|| {
            let mut bytes = [0; N];
            self.read(address_avma, &mut bytes).then_some(bytes)
        })
    }

    /// Reads a word.
    pub(crate) fn word(&self, address_avma: u64) -> Option<u64> {
        self.array(address_avma).map(u64::from_le_bytes)
    }

    /// Reads a word, 0 if it cannot be read.
    pub(crate) fn word_or_zero(&self, address_avma: u64) -> u64 {
        self.word(address_avma).unwrap_or(0)
    }

    /// Reads four bytes.
    pub(crate) fn half(&self, address_avma: u64) -> Option<u32> {
        self.array(address_avma).map(u32::from_le_bytes)
    }

    /// Reads a byte.
    pub(crate) fn byte(&self, address_avma: u64) -> Option<u8> {
        self.array::<1>(address_avma).map(|[byte]| byte)
    }

    /// Reads a text that ends in a zero byte, of at most `most` bytes.
    pub(crate) fn text(&self, address_avma: u64, most: usize) -> Option<String> {
        let mut text = Vec::new();
        while text.len() <= most {
            let at_avma = address_avma.checked_add(text.len() as u64)?;
            let (count, is_end) = self.with_rest(at_avma, |rest| {
                let rest = &rest[..rest.len().min(most + 1)];
                let end = rest.iter().position(|&byte| byte == 0);
                let part = &rest[..end.unwrap_or(rest.len())];
                text.extend_from_slice(part);
                (rest.len(), end.is_some())
            });
            if is_end {
                return String::from_utf8(text).ok().filter(|text| text.len() <= most);
            }
            if count == 0 {
                return None;
            }
        }
        None
    }

    /// Reads `count` words and calls `take` with each; stops at the first unreadable one.
    pub(crate) fn words(&self, address_avma: u64, count: u64, mut take: impl FnMut(u64, u64)) {
        for number in 0..count {
            if !self.spend(1) {
                return;
            }
            let Some(word) = number
                .checked_mul(8)
                .and_then(|offset| address_avma.checked_add(offset))
                .and_then(|at_avma| self.word(at_avma))
            else {
                return;
            };
            take(number, word);
        }
    }
}
