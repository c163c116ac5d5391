//! Writing of records into the thread's buffer.
//!
//! ```text
//! published = cursor | BUSY      the recorder holds later events of other threads back
//! time stamp
//! words of the record            (fewer, if it can be a short one)
//! published = new cursor         (release) the record exists, whatever happens to the process now
//! ```
//!
//! The part between the two stores is a dozen instructions and never waits.
//!
//! A thread holds its buffer until that is full, however long that takes. If so many buffers are
//! held that few are left, a buffer is closed with its first record, in the same store that
//! publishes it. Otherwise thousands of idle threads would keep the others waiting.

use core::sync::atomic::{AtomicU64, Ordering::*};

use heapr_ring::{early_ends, writer};
use heapr_wire::{
    HEAP_MALLOC, MODULE_MAIN, ModuleRecord, NO_RECORD_BEFORE, PUBLISHED_CLOSED, RecordKind, SHORT_ALLOC,
    address_word, short_word0, word0,
};

use crate::arch::keep_stores_before_time;
use crate::modules::{self, Module, ModuleSink, mapped_path};
use crate::record::thread::{Level, Scope};
use crate::state::event_clock::Region;
use crate::state::{AGENT, ForkLocal, program};

/// Makes sure that a record of `words` fits into the level's buffer. Returns `false` if the record
/// is lost (and counted).
#[inline(always)]
pub(crate) fn ensure_room(scope: &mut Scope, words: u32) -> bool {
    let level = scope.level();
    // After the record that closes its buffer, the limit lies before the cursor.
    let room = level.limit.wrapping_sub(level.cursor).cast_signed();
    if room >= words.cast_signed() { true } else { refill(scope, words) }
}

/// Slow path of [`ensure_room`]: closes the current buffer and claims the next one.
#[cold]
#[inline(never)]
fn refill(scope: &mut Scope, words: u32) -> bool {
    let Some(pool) = AGENT.pool() else { return false };
    if !AGENT.is_active() {
        return false;
    }
    let Some(process) = AGENT.process() else { return false };
    scope.state().revive();
    let (thread_id, closes_buffers) = (scope.state().thread_id, scope.state().closes_buffers);
    let depth = scope.depth();
    let level = scope.level();
    if level.slot.is_null() {
        let Some(claim) = writer::claim_thread(pool, process, thread_id, depth) else {
            AGENT.count(|slot| &slot.events_lost);
            return false;
        };
        let Some(slot) = pool.thread_slot(claim.index) else { return false };
        level.claim = claim;
        level.slot = slot;
        level.sequence = 0;
    }
    // SAFETY: a slot of the pool, which is never unmapped.
    let slot = unsafe { &*level.slot };
    level.close_buffer();
    let purpose = writer::BufferUse::Events { thread: level.claim, sequence: level.sequence };
    let mut waited_ns = 0;
    let claimed = AGENT.claim_buffer(pool, purpose, &mut waited_ns);
    if waited_ns != 0 {
        add(&slot.wait_count, 1);
        add(&slot.wait_ns, waited_ns);
    }
    let parts = claimed.and_then(|index| Some((pool.buffer_words(index)?, pool.buffer_header(index)?)));
    let Some((buffer, header)) = parts else {
        // An event that is dropped because the session was closed during the wait is no loss: its
        // time would lie after the session's end.
        if AGENT.is_active() {
            add(&slot.events_lost, 1);
        }
        return false;
    };
    level.sequence = level.sequence.wrapping_add(1);
    level.words = buffer.as_ptr();
    level.header = header;
    level.cursor = 0;
    level.limit = buffer.len() as u32;
    if closes_buffers {
        early_ends::note(pool);
    }
    if closes_buffers || writer::is_to_pass_on(pool) {
        level.closing = PUBLISHED_CLOSED;
        level.limit = 0;
        writer::let_go(pool);
    }
    level.last_ticks = NO_RECORD_BEFORE;
    level.clock.next_buffer();
    // A forked child has its parent's modules, and the recorder must know them. (The child may have
    // been registered before, for the nodes of its first stack.)
    let is_first = |local: &ForkLocal| local.has_told_modules.swap(1, Relaxed) == 0;
    if AGENT.fork_local().is_some_and(is_first) {
        modules::announce_all(&mut Records { scope });
        return ensure_room(scope, words);
    }
    words as usize <= buffer.len()
}

/// Adds to a counter that only this thread writes.
#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Publishes a record, for which there is room. `fill` receives the location of the record's first
/// word, the record's time and that of the record before. It returns the number of words that it
/// has written.
#[inline(always)]
fn publish(level: &mut Level, region: Option<Region>, fill: impl FnOnce(*const AtomicU64, u64, u64) -> u32) {
    // SAFETY: a header of the pool, which is never unmapped, of the buffer that this thread fills;
    // the cursor lies in it.
    let (header, first) = unsafe { (&*level.header, level.words.add(level.cursor as usize)) };
    writer::begin_event(header, level.cursor);
    keep_stores_before_time();
    let Some(ticks) = AGENT.event_ticks(&mut level.clock, region, level.cursor) else {
        writer::publish(header, level.cursor, 0);
        return;
    };
    let words = fill(first, ticks, level.last_ticks);
    level.last_ticks = ticks;
    level.cursor = level.cursor.wrapping_add(words);
    writer::publish(header, level.cursor, level.closing);
}

/// Writes words from `place` (the location of the first one) on.
///
/// # Safety
/// 1. The words fit into the buffer that `place` lies in.
#[inline(always)]
unsafe fn put<const N: usize>(place: *const AtomicU64, words: [u64; N]) {
    for (offset, word) in words.into_iter().enumerate() {
        // SAFETY: (1).
        unsafe { (*place.add(offset)).store(word, Relaxed) };
    }
}

/// Writes a record of `N` words after the first one (which is made from `kind` and the time). There
/// must be room for it.
#[inline(always)]
pub(super) fn write<const N: usize>(
    level: &mut Level,
    kind: RecordKind,
    region: Option<Region>,
    rest: [u64; N],
) {
    publish(level, region, |first, ticks, _| {
        // SAFETY: `ensure_room` has seen that N + 1 words fit between cursor and limit.
        unsafe {
            put(first, [word0(kind, ticks)]);
            put(first.add(1), rest);
        }
        N as u32 + 1
    });
}

/// Returns the region of a block of the main heap; `None` for other heaps. (Those are unmapped in
/// parts, and destroyed with all their blocks.)
#[inline(always)]
pub(super) fn region_of(heap: u8, address: usize) -> Option<Region> {
    (heap == HEAP_MALLOC).then(|| Region::of(address as u64))
}

/// Writes an allocation (with size and node) or a free of the main heap, as a short record if it
/// fits. There must be room for the long record.
#[inline(always)]
pub(super) fn write_plain<const N: usize>(level: &mut Level, address: usize, packed: [u64; N]) {
    let (kind, alloc_bit) = if N == 0 { (RecordKind::Free, 0) } else { (RecordKind::Alloc, SHORT_ALLOC) };
    let address = address as u64;
    publish(level, Some(Region::of(address)), |first, ticks, ticks_before| {
        // SAFETY: `ensure_room` has seen that N + 2 words fit between cursor and limit.
        unsafe {
            let begin = match short_word0(alloc_bit, address, ticks, ticks_before) {
                Some(word0) => {
                    put(first, [word0]);
                    1
                }
                None => {
                    put(first, [word0(kind, ticks), address_word(HEAP_MALLOC, address)]);
                    2
                }
            };
            put(first.add(begin), packed);
            (begin + N) as u32
        }
    });
}

/// Fast path of [`write_plain`]: writes the same record if there is room, it can be short and its
/// time is as expected. That is nearly always so, and heapr's test `victims` compares both paths.
/// If it returns `false`, nothing was written, and the caller must use the functions of
/// [`super::events`].
///
/// The function calls no other function, so that a hook that does no more needs no registers saved.
#[inline(always)]
pub(crate) fn write_short<const N: usize>(level: &mut Level, address: usize, packed: [u64; N]) -> bool {
    let room = level.limit.wrapping_sub(level.cursor).cast_signed();
    if room <= N as i32 {
        return false;
    }
    let alloc_bit = if N == 0 { 0 } else { SHORT_ALLOC };
    // SAFETY: as in `publish`.
    let place = |level: &Level| unsafe { (&*level.header, level.words, level.cursor) };
    // A free has no registers for values that can be read again: it would have to save them.
    let held = place(level);
    let place = |level: &Level| if N == 0 { place(level) } else { held };
    let (header, _, cursor) = held;
    writer::begin_event(header, cursor);
    keep_stores_before_time();
    let found = AGENT.clock.expected_ticks(&level.clock, Region::of(address as u64));
    let found = found
        .and_then(|ticks| Some((ticks, short_word0(alloc_bit, address as u64, ticks, level.last_ticks)?)));
    let (header, words, cursor) = place(level);
    let Some((ticks, word0)) = found else {
        writer::publish(header, cursor, 0);
        return false;
    };
    // SAFETY: N + 1 words fit between cursor and limit.
    unsafe {
        let first = words.add(cursor as usize);
        put(first, [word0]);
        put(first.add(1), packed);
    }
    level.last_ticks = ticks;
    let cursor = cursor.wrapping_add(N as u32 + 1);
    level.cursor = cursor;
    writer::publish(header, cursor, level.closing);
    true
}

/// Writes module records through a hook in progress.
pub(crate) struct Records<'a> {
    pub(crate) scope: &'a mut Scope,
}

impl ModuleSink for Records<'_> {
    fn module(&mut self, module: &Module, flags: u64) {
        let (mut path, mut command): (_, &[u8]) = (module.path(), &[]);
        if flags & MODULE_MAIN != 0 {
            // The link map does not name the main program, and the program may have ended before
            // the recorder reads it.
            (path, command) = (program::executable(), program::command_line());
        }
        let start = module.start.load(Relaxed);
        let is_relative = path.contains(&b'/') && !path.starts_with(b"/");
        let mut is_written = false;
        if is_relative {
            mapped_path::of_address(start, &mut |path| {
                self.module_at(module, flags, path, command);
                is_written = true;
            });
        }
        if !is_written {
            self.module_at(module, flags, path, command);
        }
    }
}

impl Records<'_> {
    fn module_at(&mut self, module: &Module, flags: u64, path: &[u8], command: &[u8]) {
        // A path that is too long loses its beginning, as its end is more specific.
        let cut = path.len().saturating_sub(ModuleRecord::PATH_BYTES_MAX);
        let path = path.get(cut..).unwrap_or_default();
        let build_id = module.build_id();
        let fixed = [
            module.bias.load(Relaxed) as u64,
            module.start.load(Relaxed) as u64,
            module.end.load(Relaxed) as u64,
            (build_id.len() as u64) << 32 | path.len() as u64,
            flags,
            command.len() as u64,
        ];
        write_texts(self.scope, RecordKind::Module, fixed, [build_id, path, command]);
    }
}

/// Writes a record of variable length: its own length, the words `fixed`, then the texts, each
/// padded to whole words.
pub(super) fn write_texts<const N: usize, const TEXTS: usize>(
    scope: &mut Scope,
    kind: RecordKind,
    fixed: [u64; N],
    texts: [&[u8]; TEXTS],
) {
    let words = texts.iter().fold(N.wrapping_add(2), |sum, text| sum.wrapping_add(text.len().div_ceil(8)));
    if !ensure_room(scope, words as u32) {
        return;
    }
    let level = scope.level();
    let texts = texts.iter().flat_map(|text| text.chunks(8)).map(|bytes| {
        let mut word = [0; 8];
        for (place, &byte) in word.iter_mut().zip(bytes) {
            *place = byte;
        }
        u64::from_le_bytes(word)
    });
    // All words but the first are written before the time is read.
    // SAFETY: `ensure_room` has seen that `words` fit between cursor and limit of this thread's
    // buffer.
    let mut next = unsafe { level.words.add(level.cursor as usize) };
    for word in [words.wrapping_mul(8) as u64].into_iter().chain(fixed).chain(texts) {
        // SAFETY: as above.
        unsafe {
            next = next.add(1);
            (*next).store(word, Relaxed);
        }
    }
    publish(level, None, |first, ticks, _| {
        // SAFETY: as above.
        unsafe { put(first, [word0(kind, ticks)]) };
        words as u32
    });
}
