//! Makes the columns of an event chunk.
//!
//! ```text
//! events --take apart--> lists of numbers: tokens, times, threads, addresses ... --put--> streams of bytes
//! ```
//! What comes next in a program with threads is not to be guessed, and a processor that guesses a branch wrong loses as much time as
//! ten numbers take. So a block of events is taken apart into lists first, and then each list becomes bytes on its own. Whether
//! the thread changes and how many bytes a number takes is computed, without a branch; what nearly always goes the same way, and what
//! a processor would have to wait for (a table's entry), is branched on.

use super::made::MadeBlocks;
use super::numbers::{LIST, Stream, offer};
use super::*;
use crate::bytes::zigzag;

/// Events that are taken apart together: some lists take two numbers of an event, and one is offered that is not taken.
const BLOCK: usize = LIST / 2 - 1;

/// Marks a number in the list of threads that is one byte and no varint: a heap of 128 and more (below that the two are the same).
const BYTE: u64 = 1 << 32;

/// What a block of events is taken apart into: the numbers of each stream.
#[derive(Debug)]
struct Lists {
    tokens: [u8; LIST],
    times: [u64; LIST],
    /// And heaps.
    threads: [u64; LIST],
    /// As they are; their differences are taken when they are put.
    addresses: [u64; LIST],
    refs: [u64; LIST],
    places: [u16; LIST],
    /// Stack and size in turn.
    new_sites: [u64; LIST],
}

/// How many numbers each list has.
#[derive(Debug, Default)]
struct Counts {
    events: usize,
    threads: usize,
    addresses: usize,
    refs: usize,
    places: usize,
    new_sites: usize,
}

/// The writer's table of sites: the pairs of [`Models::sites`] whose size has 32 bits, in half the room.
#[derive(Debug)]
struct Sites {
    table: Box<[u64; SITES]>,
    last_stack: u32,
}

/// Collects the events of a chunk as columns.
#[derive(Debug)]
pub(crate) struct EventColumns {
    pub(crate) count: usize,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    thread: ThreadIndex,
    last_address: u64,
    sites: Sites,
    made: MadeBlocks,
    lists: Box<Lists>,
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
            sites: Sites { table: Box::new([NO_SITE; SITES]), last_stack: 0 },
            made: MadeBlocks::new(),
            lists: Box::new(lists),
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
        self.sites.table.fill(NO_SITE);
        self.sites.last_stack = 0;
        self.made.clear();
        self.streams.iter_mut().for_each(Stream::clear);
    }

    /// Appends events, as many as there are, but no more than `room`. Times must not decrease: an earlier one is taken for
    /// the last.
    #[inline]
    pub(crate) fn push_all<'a>(
        &mut self,
        events: &mut impl ExactSizeIterator<Item = &'a Event>,
        room: usize,
    ) {
        let mut left = events.len().min(room);
        while left > 0 {
            let before_ns = self.last_ns;
            let counts = self.take_apart(events, left.min(BLOCK));
            if self.count == 0 {
                // The first time is since the chunk's first, which it is itself.
                self.first_ns = before_ns + std::mem::take(&mut self.lists.times[0]);
            }
            self.count += counts.events;
            self.put(&counts);
            left -= left.min(BLOCK);
        }
    }

    /// Takes at most `count` events apart.
    #[inline(always)]
    fn take_apart<'a>(&mut self, events: &mut impl Iterator<Item = &'a Event>, count: usize) -> Counts {
        let Self { sites, made, lists, .. } = self;
        let lists = &mut **lists;
        let mut counts = Counts::default();
        let (mut last_ns, mut thread) = (self.last_ns, self.thread);
        for event in events.take(count) {
            let time_ns = event.time_ns.max(last_ns);
            lists.times[counts.events % LIST] = time_ns - last_ns;
            last_ns = time_ns;
            let is_new_thread = event.thread != thread;
            offer(&mut lists.threads, &mut counts.threads, u64::from(event.thread.0), is_new_thread);
            thread = event.thread;
            let mut token = u8::from(is_new_thread) * NEW_THREAD;
            if event.heap != HeapId::MALLOC {
                let mark = if event.heap.0 < 128 { 0 } else { BYTE };
                offer(&mut lists.threads, &mut counts.threads, u64::from(event.heap.0) | mark, true);
                token |= WITH_HEAP;
            }
            token |= match event.action {
                Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc } => {
                    let kind = if is_moved_realloc { ALLOC_MOVED } else { ALLOC };
                    let is_foretold = made.alloc(address_avma, size_bytes);
                    let site = sites.put(lists, &mut counts, stack, size_bytes);
                    if is_foretold {
                        kind | site | ADDRESS_KNOWN
                    } else {
                        offer(&mut lists.addresses, &mut counts.addresses, address_avma, true);
                        kind | site
                    }
                }
                Action::Free { address_avma, stack, is_moved_realloc } => {
                    let freed = put_free(made, lists, &mut counts, address_avma);
                    if stack == StackIndex::EMPTY {
                        freed | if is_moved_realloc { FREE_MOVED } else { FREE }
                    } else {
                        let site = sites.put(lists, &mut counts, stack, u64::from(is_moved_realloc));
                        freed | FREE_WITH_STACK | site
                    }
                }
                Action::Realloc { old_address_avma, address_avma, size_bytes, stack } => {
                    let freed = put_free(made, lists, &mut counts, old_address_avma);
                    made.note(address_avma, class(size_bytes));
                    let is_in_place = old_address_avma == address_avma;
                    offer(&mut lists.addresses, &mut counts.addresses, address_avma, !is_in_place);
                    let site = sites.put(lists, &mut counts, stack, size_bytes);
                    let in_place = if is_in_place { IN_PLACE } else { 0 };
                    REALLOC | freed | site | in_place
                }
                Action::Failed { size_bytes, stack } => {
                    FAILED | sites.put(lists, &mut counts, stack, size_bytes)
                }
            };
            lists.tokens[counts.events % LIST] = token;
            counts.events += 1;
        }
        self.last_ns = last_ns;
        self.thread = thread;
        counts
    }

    /// Appends the lists to the streams.
    #[inline(never)]
    fn put(&mut self, counts: &Counts) {
        let lists = &mut *self.lists;
        let [tokens, times, threads, addresses, refs, places, new_sites] = &mut self.streams;
        tokens.put(&lists.tokens[..counts.events]);
        times.put_varints(&lists.times[..counts.events]);
        put_threads(threads, &lists.threads[..counts.threads]);
        let list = &mut lists.addresses[..counts.addresses];
        for address in &mut *list {
            let before = std::mem::replace(&mut self.last_address, *address);
            *address = zigzag(address.wrapping_sub(before).cast_signed());
        }
        addresses.put_varints(list);
        refs.put_varints(&lists.refs[..counts.refs]);
        places.put_words(&lists.places[..counts.places]);
        new_sites.put_varints(&lists.new_sites[..counts.new_sites]);
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
fn put_free(made: &mut MadeBlocks, lists: &mut Lists, counts: &mut Counts, address: u64) -> u8 {
    if let Some(back) = made.free(address) {
        offer(&mut lists.refs, &mut counts.refs, back, true);
        ADDRESS_KNOWN
    } else {
        offer(&mut lists.addresses, &mut counts.addresses, address, true);
        0
    }
}

/// A pair as a number.
const fn site(stack: u32, short_size: u32) -> u64 {
    (stack as u64) << 32 | short_size as u64
}

/// What a chunk begins with at every place.
const NO_SITE: u64 = site(u32::MAX, 0);

impl Sites {
    #[inline(always)]
    fn put(&mut self, lists: &mut Lists, counts: &mut Counts, stack: StackIndex, size_bytes: u64) -> u8 {
        let place = site_place(stack.0, size_bytes);
        let known = &mut self.table[place];
        let is_long = size_bytes >> 32 != 0;
        let site = site(stack.0, size_bytes as u32);
        if *known == site && !is_long {
            offer(&mut lists.places, &mut counts.places, place as u16, true);
            return 0;
        }
        *known = if is_long { site_of_elsewhere(place) } else { site };
        let difference = zigzag(i64::from(stack.0) - i64::from(self.last_stack));
        self.last_stack = stack.0;
        offer(&mut lists.new_sites, &mut counts.new_sites, difference, true);
        offer(&mut lists.new_sites, &mut counts.new_sites, size_bytes, true);
        NEW_SITE
    }
}

const _: () = assert!(site_place(u32::MAX, 0) != site_place(u32::MAX, 1));

/// A pair that never comes to this place: there the reader has one that does not fit into the writer's table.
#[cold]
fn site_of_elsewhere(place: usize) -> u64 {
    if place == site_place(u32::MAX, 0) { site(u32::MAX, 1) } else { NO_SITE }
}
