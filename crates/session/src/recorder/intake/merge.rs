//! Merges the buffers of many threads into one stream of records in time order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapr_ring::Pool;
use heapr_trace::ThreadIndex;
use heapr_wire::{RecordKind, TICKS_MASK, record_ticks};

/// Buffer of a stream, and how much of it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamBuffer {
    pub(crate) sequence: u64,
    pub(crate) index: u32,
    /// Words read so far.
    pub(crate) taken: usize,
    /// Words published when the round began.
    pub(crate) published: usize,
    pub(crate) is_busy: bool,
    pub(crate) is_closed: bool,
    pub(crate) claimed_ticks: u64,
}

/// Records of one thread (at one nesting level), in its buffers' order.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// Index of the process among the recorder's.
    pub(crate) process: usize,
    pub(crate) thread: ThreadIndex,
    pub(crate) buffers: VecDeque<StreamBuffer>,
    /// Time of the last record read.
    pub(crate) last_ticks: u64,
    /// Time at which the stream was first seen busy without progress, by the recorder's clock; 0:
    /// it is not.
    pub(crate) busy_since_ns: u64,
    /// Time of the last published record at that moment.
    pub(crate) busy_at_ticks: u64,
    pub(crate) has_ended: bool,
    /// Time of the next check whether the thread lives and what its name is.
    pub(crate) next_look_ns: u64,
    /// True if the thread had ended when the last scan began: after that round none of its events
    /// is unread.
    pub(crate) had_ended_at_scan: bool,
}

/// Position of a stream: the next record's first word, and all words from there to the end of what
/// is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) ticks: u64,
    pub(crate) word0: u64,
    pub(crate) words: &'a [AtomicU64],
}

impl<'a> Head<'a> {
    /// `ticks_before`: time of the previous record in the buffer.
    #[inline(always)]
    fn new(pool: &'a Pool, buffer: u32, from: usize, to: usize, ticks_before: u64) -> Option<Self> {
        let words = pool.buffer_words(buffer)?.get(from..to)?;
        let word0 = words.first()?.load(Relaxed);
        Some(Self { ticks: record_ticks(word0, ticks_before), word0, words })
    }

    /// Sort key of the record; see [`order`].
    #[inline(always)]
    pub(crate) fn order(&self) -> u64 {
        order(self.word0, self.ticks)
    }

    /// Word `number` of the record; 0 beyond what is published.
    #[inline(always)]
    pub(crate) fn word(&self, number: usize) -> u64 {
        self.words.get(number).map_or(0, |word| word.load(Relaxed))
    }
}

impl Stream {
    pub(crate) fn new(slot: u32, generation: u32, process: usize, thread: ThreadIndex) -> Self {
        Self {
            slot,
            generation,
            process,
            thread,
            buffers: VecDeque::new(),
            last_ticks: 0,
            busy_since_ns: 0,
            busy_at_ticks: 0,
            has_ended: false,
            next_look_ns: 0,
            had_ended_at_scan: false,
        }
    }

    /// Notes a buffer as the scan found it.
    pub(crate) fn note(&mut self, found: StreamBuffer) {
        let place = self.buffers.partition_point(|known| known.sequence < found.sequence);
        // The buffer is mostly at this position. If its sequence number has changed, it must not be
        // entered twice.
        let is_known = self.buffers.get(place).is_some_and(|known| known.index == found.index);
        let known = if is_known {
            Some(place)
        } else {
            self.buffers.iter().position(|known| known.index == found.index)
        };
        if let Some(known) = known.and_then(|known| self.buffers.get_mut(known)) {
            // Lengths only grow; a smaller one is ignored.
            known.published = known.published.max(found.published);
            known.is_busy = found.is_busy;
            known.is_closed |= found.is_closed;
            return;
        }
        self.buffers.insert(place, found);
    }

    /// Returns the time of the last published record, if there is one.
    pub(crate) fn published_ticks(&self, pool: &Pool) -> Option<u64> {
        let buffer = self.buffers.back()?;
        let mut place = buffer.taken;
        let mut last = (buffer.taken > 0).then_some(self.last_ticks);
        // Unread records are stepped over one by one: the rounds keep them few.
        while place < buffer.published {
            let head = Head::new(pool, buffer.index, place, buffer.published, last.unwrap_or(0))?;
            last = Some(head.ticks);
            place += record_words(&head).map_or(buffer.published, |(_, words)| words);
        }
        last
    }

    /// Returns the next record. Used-up buffers are passed over; they are freed at the round's end.
    #[inline(always)]
    pub(crate) fn head<'a>(&self, pool: &'a Pool, at: &mut usize) -> Option<Head<'a>> {
        loop {
            let buffer = self.buffers.get(*at)?;
            if buffer.taken < buffer.published {
                return Head::new(pool, buffer.index, buffer.taken, buffer.published, self.last_ticks);
            }
            // Only after a closed buffer can the next one be read.
            if !buffer.is_closed {
                return None;
            }
            *at += 1;
        }
    }

    /// Steps over a record of `words`.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: usize, words: usize, ticks: u64) {
        self.last_ticks = ticks;
        if let Some(buffer) = self.buffers.get_mut(at) {
            buffer.taken += words;
        }
    }

    /// Skips the rest of a buffer whose records are invalid.
    pub(crate) fn skip_buffer(&mut self, at: usize) {
        if let Some(buffer) = self.buffers.get_mut(at) {
            buffer.taken = buffer.published;
        }
    }
}

/// Returns kind and length in words of the record at `head`; `None` if it is invalid.
#[inline(always)]
pub(crate) fn record_words(head: &Head<'_>) -> Option<(RecordKind, usize)> {
    let kind = RecordKind::of_untrusted(head.word0)?;
    let words = match kind {
        RecordKind::Module | RecordKind::Function => {
            let bytes = head.word(1);
            if !bytes.is_multiple_of(8) {
                return None;
            }
            usize::try_from(bytes / 8).ok().filter(|&words| words >= 2)?
        }
        kind => kind.words(),
    };
    (words >= 1 && words <= head.words.len()).then_some((kind, words))
}

/// Bit set of the kinds of records that free something. A short free has 16 kinds, because bits of
/// its time are in the kind.
const FREEING: u64 = 0xffff << RecordKind::ShortFree as u64
    | 1 << RecordKind::Free as u64
    | 1 << RecordKind::FreeStack as u64
    | 1 << RecordKind::ReallocPrepare as u64
    | 1 << RecordKind::Unmap as u64
    | 1 << RecordKind::HeapDestroy as u64
    | 1 << RecordKind::PoolClear as u64;

/// Sort key of a record: time, then frees before others of the same time, because these may have
/// been given what was freed.
#[inline(always)]
pub(crate) fn order(word0: u64, ticks: u64) -> u64 {
    let frees = FREEING >> (word0 >> RecordKind::SHIFT) & 1;
    ticks << 1 | (1 - frees)
}

/// Largest sort key of a record at a time.
#[inline(always)]
pub(crate) fn last_order_at(ticks: u64) -> u64 {
    ticks.min(TICKS_MASK) << 1 | 1
}
