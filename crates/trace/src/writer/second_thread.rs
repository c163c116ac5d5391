//! A second thread that encodes and packs whole chunks of events.
//!
//! The writer is sometimes behind with its events. This happens when targets keep all processors
//! busy, most of all after these have ended and other processors are idle. A chunk of events stands
//! alone, so that any thread can pack it, and only the order of writing matters:
//!
//! ```text
//! writer   events -> [chunk 3 so far]                    writes packed chunks, in order: 1, 2 ...
//!                         | full                                  ^
//!                         v                                       | packed
//! jobs               [2] [3] --oldest--> second thread: columns, compressor
//!                         '--oldest, if [`WAITING_MAX`] wait or the writer is idle--> the writer itself
//! ```
//!
//! The bytes are the same as without the thread. Waiting events take 48 bytes each, 3 MiB a chunk.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::packed_chunk::packed_events;
use crate::Event;
use crate::chunk::ChunkHeader;
use crate::events::{EVENTS_PER_CHUNK, EventColumns};
use crate::payload::Packer;

/// Largest number of chunks that wait for the second thread. With two, the next one is ready when
/// the thread finishes the first.
const WAITING_MAX: usize = 2;

/// The events of a chunk that is packed later.
#[derive(Debug, Default)]
pub(super) struct LaterChunk {
    events: Vec<Event>,
    /// Time of the last event before the chunk.
    last_ns: u64,
}

impl LaterChunk {
    /// Appends an event. Returns whether the chunk is full.
    #[inline]
    pub(super) fn push(&mut self, event: &Event) -> bool {
        self.events.push(*event);
        self.events.len() >= EVENTS_PER_CHUNK
    }

    /// Appends events up to a full chunk. Returns whether it is full, and the latest time of the
    /// added events.
    #[inline]
    pub(super) fn fill<'a>(&mut self, events: &mut impl Iterator<Item = &'a Event>) -> (bool, u64) {
        let from = self.events.len();
        self.events.extend(events.take(EVENTS_PER_CHUNK.saturating_sub(from)));
        let last_ns = self.events[from..].iter().fold(0, |last, event| event.time_ns.max(last));
        (self.events.len() >= EVENTS_PER_CHUNK, last_ns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// A packed chunk of events.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) header: ChunkHeader,
    pub(super) payload: Vec<u8>,
    /// Empty vector for a later chunk's events.
    emptied: Vec<Event>,
}

/// Encodes and packs chunks of events.
#[derive(Debug)]
struct ChunkPacker {
    columns: EventColumns,
    packer: Packer,
}

impl ChunkPacker {
    fn new() -> Self {
        Self { columns: EventColumns::new(), packer: Packer::new() }
    }

    fn pack(&mut self, chunk: LaterChunk) -> Packed {
        let LaterChunk { events: mut emptied, last_ns } = chunk;
        let Self { columns, packer } = self;
        columns.last_ns = last_ns;
        let _ = columns.push_all(emptied.iter(), EVENTS_PER_CHUNK);
        emptied.clear();
        let (header, payload) = packed_events(columns, packer);
        Packed { header, payload: packer.without_room(payload), emptied }
    }
}

/// Chunks that wait for the thread.
#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<(u64, LaterChunk)>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    jobs: Mutex<Jobs>,
    has_more: Condvar,
}

impl Shared {
    /// (The lock is held only for single calls of a queue.)
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<(u64, LaterChunk)> {
        let mut jobs = self.jobs();
        loop {
            if jobs.is_over {
                return None;
            }
            match jobs.waiting.pop_front() {
                Some(job) => return Some(job),
                None => jobs = self.has_more.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The second thread, seen from the writer.
#[derive(Debug)]
pub(super) struct SecondThread {
    shared: Arc<Shared>,
    from_thread: Receiver<(u64, Packed)>,
    thread: Option<JoinHandle<()>>,
    job_count: u64,
    /// Chunks that are packed and not yet taken.
    done: Vec<(u64, Packed)>,
    /// Packer for the chunks that the writer packs itself.
    own: Option<Box<ChunkPacker>>,
    emptied: Vec<Vec<Event>>,
}

impl SecondThread {
    /// Starts the thread. Returns `None` if there is no processor or no memory for it.
    pub(super) fn start() -> Option<Self> {
        if std::thread::available_parallelism().is_ok_and(|count| count.get() < 2) {
            return None;
        }
        let shared = Arc::new(Shared::default());
        let (to_writer, from_thread) = channel();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("second".to_owned());
        let thread = thread.spawn(move || work(&of_thread, &to_writer)).ok()?;
        Some(Self {
            shared,
            from_thread,
            thread: Some(thread),
            job_count: 0,
            done: Vec::new(),
            own: None,
            emptied: Vec::new(),
        })
    }

    /// Returns an empty chunk; `last_ns`: time of the last event before it.
    pub(super) fn begin_chunk(&mut self, last_ns: u64) -> LaterChunk {
        let events = self.emptied.pop().unwrap_or_else(|| Vec::with_capacity(EVENTS_PER_CHUNK));
        LaterChunk { events, last_ns }
    }

    /// Queues a chunk; returns its number for [`SecondThread::take`].
    pub(super) fn push(&mut self, chunk: LaterChunk) -> u64 {
        let number = self.job_count;
        self.job_count += 1;
        let waiting_count = {
            let mut jobs = self.shared.jobs();
            jobs.waiting.push_back((number, chunk));
            jobs.waiting.len()
        };
        self.shared.has_more.notify_one();
        if waiting_count > WAITING_MAX {
            self.pack_oldest();
        }
        number
    }

    /// Packs the oldest chunk that is still queued. Returns `false` if the queue is empty.
    fn pack_oldest(&mut self) -> bool {
        let Some((number, chunk)) = self.shared.jobs().waiting.pop_front() else { return false };
        let packed = self.own.get_or_insert_with(|| Box::new(ChunkPacker::new())).pack(chunk);
        self.done.push((number, packed));
        true
    }

    /// Takes a chunk that is packed. With `is_wanted` it waits for the chunk, and packs queued ones
    /// meanwhile. The outer `None` means that the thread has died with the chunk.
    pub(super) fn take(&mut self, number: u64, is_wanted: bool) -> Option<Option<(ChunkHeader, Vec<u8>)>> {
        loop {
            self.done.extend(self.from_thread.try_iter());
            if let Some(place) = self.done.iter().position(|&(done, _)| done == number) {
                let Packed { header, payload, emptied } = self.done.swap_remove(place).1;
                self.emptied.push(emptied);
                return Some(Some((header, payload)));
            }
            if !is_wanted {
                return Some(None);
            }
            if !self.pack_oldest() {
                let packed = self.from_thread.recv().ok()?;
                self.done.push(packed);
            }
        }
    }
}

impl Drop for SecondThread {
    fn drop(&mut self) {
        self.shared.jobs().is_over = true;
        self.shared.has_more.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared, to_writer: &Sender<(u64, Packed)>) {
    let mut packer = ChunkPacker::new();
    while let Some((number, chunk)) = shared.next() {
        if to_writer.send((number, packer.pack(chunk))).is_err() {
            return;
        }
    }
}
