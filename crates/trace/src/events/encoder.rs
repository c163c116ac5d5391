//! Encodes events into the columns of an event chunk.
//!
//! ```text
//! events --split--> lists of numbers: tokens, times, threads, addresses ... --append--> streams of bytes
//! ```
//! The next event of a program with threads cannot be predicted. A mispredicted branch costs as
//! much time as encoding ten numbers. So a block of events is split into lists first, and then each
//! list becomes bytes on its own. Changes of the thread and the lengths of numbers are computed
//! without branches. Branches are used where one side is nearly always taken, and where the
//! processor would otherwise wait for a load (a table's entry).
//!
//! In some programs that entry is unpredictable, too (see [`Counts::are_varied`]). For their
//! allocations a second path splits events and waits for the load. Both paths produce the same
//! bytes.

use super::block_names::MadeBlocks;
use super::numbers::{LIST, Stream, offer, offer_if};
use super::*;
use crate::bytes::zigzag;

/// Number of events that are split together. Some lists receive two numbers per event, and one more
/// slot is written without being counted.
const BLOCK: usize = LIST / 2 - 1;

/// Marks a number in the list of threads as a single byte instead of a varint: a heap of 128 or
/// more. (Below 128 both encodings are equal.)
const BYTE: u64 = 1 << 32;

/// Numbers of each stream for a block of events.
#[derive(Debug)]
struct Lists {
    tokens: [u8; LIST],
    times: [u64; LIST],
    /// Numbers of threads and heaps.
    threads: [u64; LIST],
    /// Absolute addresses; their differences are computed when the list is appended to its stream.
    addresses: [u64; LIST],
    refs: [u16; LIST],
    places: [u16; LIST],
    /// Stack and size in turn; stacks are absolute, as in `addresses`.
    new_sites: [u64; LIST],
}

/// Number of entries in each list.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    events: usize,
    threads: usize,
    addresses: usize,
    refs: usize,
    places: usize,
    new_sites: usize,
}

impl Counts {
    /// Whether branches on new sites and predicted addresses would often be mispredicted in the
    /// next block. Of 100 sites 73 are new in stress, 14 in clang++, and less than 4 in Node,
    /// redis, jq and Python. With the waiting path, the columns of stress take 9.1 ns per event
    /// instead of 10.8. Those of Node take 9.7 instead of 9.1, and of redis 7.0 instead of 6.0.
    fn are_varied(&self) -> bool {
        let (new, known) = (self.new_sites / 2, self.places);
        2 * new > known
    }
}

/// All tables that are used while events are split, behind one pointer: registers are scarce.
#[derive(Debug)]
struct Tables {
    lists: Lists,
    /// The writer's table of sites: the pairs of [`Models::sites`] whose size fits 32 bits, in half
    /// the space.
    sites: [u64; SITES],
    made: MadeBlocks,
}

/// Collects the events of a chunk as columns.
#[derive(Debug)]
pub(crate) struct EventColumns {
    pub(crate) count: usize,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    thread: ThreadIndex,
    last_address: u64,
    last_stack: u32,
    /// Whether the last block was varied: see [`Counts::are_varied`].
    is_varied: bool,
    tables: Box<Tables>,
    streams: [Stream; EVENT_STREAMS],
}

impl EventColumns {
    pub(crate) fn new() -> Self {
        let lists = Lists {
            tokens: [0; LIST],
            times: [0; LIST],
            threads: [0; LIST],
            addresses: [0; LIST],
            refs: [0; LIST],
            places: [0; LIST],
            new_sites: [0; LIST],
        };
        Self {
            count: 0,
            first_ns: 0,
            last_ns: 0,
            thread: NO_THREAD,
            last_address: 0,
            last_stack: 0,
            is_varied: false,
            tables: Box::new(Tables { lists, sites: [NO_SITE; SITES], made: MadeBlocks::new() }),
            streams: Default::default(),
        }
    }

    pub(crate) fn streams(&self) -> [&[u8]; EVENT_STREAMS] {
        self.streams.each_ref().map(Stream::bytes)
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.thread = NO_THREAD;
        self.last_address = 0;
        self.last_stack = 0;
        self.tables.sites.fill(NO_SITE);
        self.tables.made.clear();
        self.streams.iter_mut().for_each(Stream::clear);
    }

    /// Appends up to `room` events and returns the remaining iterator. Times must not decrease: an
    /// earlier time is replaced by the last one.
    #[inline]
    pub(crate) fn push_all<'a, I: ExactSizeIterator<Item = &'a Event>>(
        &mut self,
        mut events: I,
        room: usize,
    ) -> I {
        let mut left = events.len().min(room);
        while left > 0 {
            let (before_ns, together) = (self.last_ns, left.min(BLOCK));
            let counts;
            (counts, events) = if self.is_varied {
                self.take_apart::<true, _>(events, together)
            } else {
                self.take_apart::<false, _>(events, together)
            };
            self.is_varied = counts.are_varied();
            self.append(&counts, before_ns);
            left -= together;
        }
        events
    }

    /// Splits at most `count` events into lists and returns the rest of the iterator. Passing the
    /// iterator by value lets its position stay in a register. The bytes do not depend on
    /// `IS_VARIED`.
    #[inline]
    fn take_apart<'a, const IS_VARIED: bool, I: Iterator<Item = &'a Event>>(
        &mut self,
        mut events: I,
        count: usize,
    ) -> (Counts, I) {
        let tables = &mut *self.tables;
        let mut counts = Counts::default();
        let (mut last_ns, mut thread) = (self.last_ns, self.thread);
        while counts.events < count {
            let Some(event) = events.next() else { break };
            let at = counts.events % LIST;
            let time_ns = event.time_ns.max(last_ns);
            tables.lists.times[at] = time_ns - last_ns;
            last_ns = time_ns;
            let is_new_thread = event.thread != thread;
            offer(&mut tables.lists.threads, &mut counts.threads, u64::from(event.thread.0), is_new_thread);
            thread = event.thread;
            let mut token = u8::from(is_new_thread) * NEW_THREAD;
            if event.heap != HeapId::MALLOC {
                let mark = if event.heap.0 < 128 { 0 } else { BYTE };
                offer(&mut tables.lists.threads, &mut counts.threads, u64::from(event.heap.0) | mark, true);
                token |= WITH_HEAP;
            }
            if let Action::Free { address_avma, stack, is_moved_realloc } = event.action {
                token |= put_free(tables, &mut counts, address_avma);
                token |= if stack == StackIndex::EMPTY {
                    if is_moved_realloc { FREE_MOVED } else { FREE }
                } else {
                    let moved = u64::from(is_moved_realloc);
                    FREE_WITH_STACK | tables.put_site::<IS_VARIED>(&mut counts, stack, moved)
                };
            } else if let Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc } = event.action {
                let kind = if is_moved_realloc { ALLOC_MOVED } else { ALLOC };
                token |= kind | tables.put_site::<IS_VARIED>(&mut counts, stack, size_bytes);
                let is_known = tables.made.alloc::<IS_VARIED>(address_avma, size_bytes);
                offer_if::<IS_VARIED, _>(
                    &mut tables.lists.addresses,
                    &mut counts.addresses,
                    address_avma,
                    !is_known,
                );
                token |= if is_known { ADDRESS_KNOWN } else { 0 };
            } else {
                let (rare, after) = put_rare(tables, counts, &event.action);
                (token, counts) = (token | rare, after);
            }
            tables.lists.tokens[at] = token;
            counts.events += 1;
        }
        self.last_ns = last_ns;
        self.thread = thread;
        (counts, events)
    }

    /// Appends the lists of a block to the streams. `before_ns` is the time of the last event
    /// before the block.
    #[inline(never)]
    fn append(&mut self, counts: &Counts, before_ns: u64) {
        if self.count == 0 {
            // The chunk's first time is stored in its header: the first difference is 0.
            self.first_ns = before_ns + std::mem::take(&mut self.tables.lists.times[0]);
        }
        self.count += counts.events;
        let lists = &mut self.tables.lists;
        let [tokens, times, threads, addresses, refs, places, new_sites] = &mut self.streams;
        tokens.put(&lists.tokens[..counts.events]);
        times.put_varints(&lists.times[..counts.events]);
        put_threads(threads, &lists.threads[..counts.threads]);
        let list = &mut lists.addresses[..counts.addresses];
        let mut last_address = self.last_address;
        for address in &mut *list {
            let before = std::mem::replace(&mut last_address, *address);
            *address = zigzag(address.wrapping_sub(before).cast_signed());
        }
        self.last_address = last_address;
        addresses.put_varints(list);
        refs.put_varints(&lists.refs[..counts.refs]);
        places.put_words(&lists.places[..counts.places]);
        let list = &mut lists.new_sites[..counts.new_sites];
        let mut last_stack = self.last_stack;
        for [stack, _] in list.as_chunks_mut().0 {
            let before = std::mem::replace(&mut last_stack, *stack as u32);
            *stack = zigzag(stack.cast_signed() - i64::from(before));
        }
        self.last_stack = last_stack;
        new_sites.put_varints(list);
    }
}

fn put_threads(stream: &mut Stream, threads: &[u64]) {
    if threads.iter().all(|&thread| thread < BYTE) {
        return stream.put_varints(threads);
    }
    for &thread in threads {
        if thread < BYTE {
            stream.put_varints(&[thread]);
        } else {
            stream.put(&[thread as u8]);
        }
    }
}

#[inline(always)]
fn put_free(tables: &mut Tables, counts: &mut Counts, address: u64) -> u8 {
    if let Some(back) = tables.made.free(address) {
        offer(&mut tables.lists.refs, &mut counts.refs, back, true);
        ADDRESS_KNOWN
    } else {
        offer(&mut tables.lists.addresses, &mut counts.addresses, address, true);
        0
    }
}

/// Splits a reallocation or a failed call; returns its token. `counts` is passed by value, so that
/// the fast path can hold it in registers.
#[cold]
#[inline(never)]
fn put_rare(tables: &mut Tables, mut counts: Counts, action: &Action) -> (u8, Counts) {
    let token = match *action {
        Action::Alloc { .. } | Action::Free { .. } => unreachable!("it is not rare"),
        Action::Realloc { old_address_avma, address_avma, size_bytes, stack } => {
            let freed = put_free(tables, &mut counts, old_address_avma);
            tables.made.note(address_avma, class(size_bytes));
            let is_in_place = old_address_avma == address_avma;
            offer(&mut tables.lists.addresses, &mut counts.addresses, address_avma, !is_in_place);
            let site = tables.put_site::<false>(&mut counts, stack, size_bytes);
            REALLOC | freed | site | if is_in_place { IN_PLACE } else { 0 }
        }
        Action::Failed { size_bytes, stack } => {
            FAILED | tables.put_site::<false>(&mut counts, stack, size_bytes)
        }
    };
    (token, counts)
}

/// A pair of stack and size as a number.
const fn site(stack: u32, short_size: u32) -> u64 {
    (stack as u64) << 32 | short_size as u64
}

/// Initial entry of the table of sites.
const NO_SITE: u64 = site(u32::MAX, 0);

impl Tables {
    #[inline(always)]
    fn put_site<const IS_VARIED: bool>(
        &mut self,
        counts: &mut Counts,
        stack: StackIndex,
        size_bytes: u64,
    ) -> u8 {
        let Self { lists, sites, .. } = self;
        let place = site_place(stack.0, size_bytes);
        let known = &mut sites[place];
        let is_long = size_bytes >> 32 != 0;
        let site = site(stack.0, size_bytes as u32);
        if IS_VARIED && !is_long {
            let is_new = *known != site;
            *known = site;
            offer(&mut lists.places, &mut counts.places, place as u16, !is_new);
            lists.new_sites[counts.new_sites % LIST] = u64::from(stack.0);
            lists.new_sites[(counts.new_sites + 1) % LIST] = size_bytes;
            counts.new_sites += 2 * usize::from(is_new);
            return if is_new { NEW_SITE } else { 0 };
        }
        if *known == site && !is_long {
            offer(&mut lists.places, &mut counts.places, place as u16, true);
            return 0;
        }
        *known = if is_long { site_of_elsewhere(place) } else { site };
        offer(&mut lists.new_sites, &mut counts.new_sites, u64::from(stack.0), true);
        offer(&mut lists.new_sites, &mut counts.new_sites, size_bytes, true);
        NEW_SITE
    }
}

const _: () = assert!(site_place(u32::MAX, 0) != site_place(u32::MAX, 1));

/// A pair that hashes to another slot. The reader's slot holds a pair whose size has more than 32
/// bits, which the writer's table cannot hold.
#[cold]
fn site_of_elsewhere(place: usize) -> u64 {
    if place == site_place(u32::MAX, 0) { site(u32::MAX, 1) } else { NO_SITE }
}

#[cfg(test)]
impl EventColumns {
    /// [`EventColumns::push_all`] with one of the two paths for all blocks.
    pub(super) fn push_all_in_way<const IS_VARIED: bool>(&mut self, events: &[Event]) {
        let mut events = events.iter();
        while events.len() > 0 {
            let before_ns = self.last_ns;
            let counts = self.take_apart::<IS_VARIED, _>(&mut events, BLOCK).0;
            self.append(&counts, before_ns);
        }
    }
}
