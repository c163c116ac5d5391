//! Writing event records into the thread's buffer.
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
    HEAP_MALLOC, HEAP_MMAP, MODULE_MAIN, ModuleRecord, NO_RECORD_BEFORE, PACKED_SIZE_MAX, PUBLISHED_CLOSED,
    RecordKind, SHORT_ALLOC, STACK_BITS, address_word, short_word0, word0,
};

use crate::arch::keep_stores_before_time;
use crate::modules::{self, Module, ModuleSink, mapped_path};
use crate::record::thread::{Level, Scope, ScopeHandle};
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

/// Registers process and thread with the recorder although there is no event yet.
pub(crate) fn announce() {
    let marker = 0_usize;
    let Some(mut scope) = Scope::enter((&raw const marker) as usize) else { return };
    ensure_room(&mut scope, 1);
    // Maps the memory of the cached stack, too.
    scope.level().kept.prepare();
    // A buffer that is to be closed with its first record must not wait for that record.
    if scope.level().closing != 0 {
        scope.level().close_buffer();
    }
    // Finds the stack's bounds by system calls, which the program may soon forbid itself.
    let is_main = scope.state().is_main;
    scope.state().ranges.find((&raw const marker) as usize, is_main);
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
fn write<const N: usize>(level: &mut Level, kind: RecordKind, region: Option<Region>, rest: [u64; N]) {
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
fn region_of(heap: u8, address: usize) -> Option<Region> {
    (heap == HEAP_MALLOC).then(|| Region::of(address as u64))
}

/// Writes an allocation (with size and node) or a free of the main heap, as a short record if it
/// fits. There must be room for the long record.
#[inline(always)]
fn write_plain<const N: usize>(level: &mut Level, address: usize, packed: [u64; N]) {
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
/// If it returns `false`, nothing was written, and the caller must use [`free`] or [`alloc`].
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

/// Records a new block of the program's main heap.
#[inline(always)]
pub(crate) fn alloc_of_malloc(scope: &mut Scope, address: usize, size: u32, stack: u64) {
    let level = scope.level();
    let packed = u64::from(size) << STACK_BITS | stack;
    if write_short(level, address, [packed]) {
    } else {
        alloc(scope.handle(), HEAP_MALLOC, address, size as usize, stack);
    }
}

/// Records a new block.
#[cold]
#[inline(never)]
pub(crate) fn alloc(handle: ScopeHandle, heap: u8, address: usize, size: usize, stack: u64) {
    let scope = &mut *handle.scope();
    if !ensure_room(scope, 4) {
        return;
    }
    let level = scope.level();
    let place = address_word(heap, address as u64);
    let packed = (size as u64) << STACK_BITS | stack;
    if size > PACKED_SIZE_MAX {
        write(level, RecordKind::AllocBig, region_of(heap, address), [place, size as u64, stack]);
    } else if heap == HEAP_MALLOC {
        write_plain(level, address, [packed]);
    } else {
        write(level, RecordKind::Alloc, None, [place, packed]);
    }
}

/// Records a new block that was drawn as a sample with this mean.
#[cold]
pub(crate) fn sample(scope: &mut Scope, address: usize, size: usize, stack: u64, mean_bytes: u64) {
    write_sample(scope, RecordKind::Sample, address, [size as u64, stack, mean_bytes]);
}

/// Records a block about to be freed on a marked page: only the recorder knows whether it is a
/// sample.
#[cold]
pub(crate) fn free_of_candidate(scope: &mut Scope, address: usize) {
    if ensure_room(scope, 2) {
        let place = address_word(HEAP_MALLOC, address as u64);
        write(scope.level(), RecordKind::CandidateFree, region_of(HEAP_MALLOC, address), [place]);
    }
}

/// Records a resized block that was drawn as a sample; ends what [`realloc_prepare`] has begun.
#[cold]
pub(crate) fn resized_sample(scope: &mut Scope, address: usize, size: usize, stack: u64, mean_bytes: u64) {
    write_sample(scope, RecordKind::ResizedSample, address, [size as u64, stack, mean_bytes]);
}

fn write_sample(scope: &mut Scope, kind: RecordKind, address: usize, rest: [u64; 3]) {
    if ensure_room(scope, 5) {
        let [size, stack, mean_bytes] = rest;
        let place = address_word(HEAP_MALLOC, address as u64);
        write(scope.level(), kind, region_of(HEAP_MALLOC, address), [place, size, stack, mean_bytes]);
    }
}

/// Records a block about to be freed.
#[inline(always)]
pub(crate) fn free(scope: &mut Scope, heap: u8, address: usize) {
    if !ensure_room(scope, 2) {
        return;
    }
    if heap == HEAP_MALLOC {
        write_plain(scope.level(), address, []);
    } else {
        write(scope.level(), RecordKind::Free, None, [address_word(heap, address as u64)]);
    }
}

/// Records a block about to be freed, with the stack of the call.
pub(crate) fn free_with_stack(scope: &mut Scope, heap: u8, address: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(
            scope.level(),
            RecordKind::FreeStack,
            region_of(heap, address),
            [address_word(heap, address as u64), stack],
        );
    }
}

/// Records a block about to be reallocated. Returns `false` if the record is lost.
#[inline(always)]
pub(crate) fn realloc_prepare(scope: &mut Scope, heap: u8, address: usize) -> bool {
    let is_room = ensure_room(scope, 2);
    if is_room {
        write(
            scope.level(),
            RecordKind::ReallocPrepare,
            region_of(heap, address),
            [address_word(heap, address as u64)],
        );
    }
    is_room
}

/// Records a reallocation that succeeded (address 0, size 0: it freed the block).
#[inline(always)]
pub(crate) fn realloc_commit(scope: &mut Scope, heap: u8, address: usize, size: usize, stack: u64) {
    if ensure_room(scope, 4) {
        let level = scope.level();
        let place = address_word(heap, address as u64);
        write(level, RecordKind::ReallocCommit, region_of(heap, address), [place, size as u64, stack]);
    }
}

/// Records a reallocation that failed: the old block stays live.
#[cold]
pub(crate) fn realloc_abort(scope: &mut Scope, heap: u8, address: usize, size: usize) {
    if ensure_room(scope, 3) {
        write(
            scope.level(),
            RecordKind::ReallocAbort,
            region_of(heap, address),
            [address_word(heap, address as u64), size as u64],
        );
    }
}

/// Records a range about to be unmapped.
pub(crate) fn unmap(scope: &mut Scope, heap: u8, address: usize, size: usize) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::Unmap, None, [address_word(heap, address as u64), size as u64]);
    }
}

/// Records a range that was mapped or protected; `what` says what becomes of it.
#[cold]
pub(crate) fn protect(scope: &mut Scope, what: u32, address: usize, size: usize, stack: u64) {
    if ensure_room(scope, 4) {
        let place = address_word(HEAP_MMAP, address as u64);
        write(
            scope.level(),
            RecordKind::Protect,
            None,
            [place, size as u64, u64::from(what) << STACK_BITS | stack],
        );
    }
}

/// Records a new heap that the program has created itself: first its name in parts, then the heap.
#[cold]
pub(crate) fn heap_created(scope: &mut Scope, heap: u8, name: &[u8], handle: u64, stack: u64) {
    for (part, bytes) in name.chunks(16).enumerate() {
        if !ensure_room(scope, 4) {
            return;
        }
        let mut words = [0_u64; 2];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            for (place, &byte) in padded.iter_mut().zip(bytes) {
                *place = byte;
            }
            *word = u64::from_le_bytes(padded);
        }
        let [first, second] = words;
        write(scope.level(), RecordKind::HeapName, None, [address_word(heap, part as u64), first, second]);
    }
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::HeapCreate, None, [address_word(heap, handle), stack]);
    }
}

/// Records that a heap of the program's own is about to be destroyed, with all its blocks.
#[cold]
pub(crate) fn heap_destroyed(scope: &mut Scope, heap: u8, handle: u64, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::HeapDestroy, None, [address_word(heap, handle), stack]);
    }
}

/// Records a new block of a pool.
#[cold]
pub(crate) fn pool_alloc(scope: &mut Scope, heap: u8, address: usize, size: usize, stack: u64, pool: usize) {
    if ensure_room(scope, 5) {
        let place = address_word(heap, address as u64);
        write(scope.level(), RecordKind::PoolAlloc, None, [place, size as u64, stack, pool as u64]);
    }
}

/// Records a pool whose blocks are all about to be freed.
#[cold]
pub(crate) fn pool_cleared(scope: &mut Scope, heap: u8, pool: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::PoolClear, None, [address_word(heap, pool as u64), stack]);
    }
}

/// Records that an existing block belongs to a pool from here on.
#[cold]
pub(crate) fn pool_joined(scope: &mut Scope, heap: u8, address: usize, pool: usize) {
    if ensure_room(scope, 3) {
        let place = address_word(heap, address as u64);
        write(scope.level(), RecordKind::PoolJoin, None, [place, pool as u64]);
    }
}

/// Records that a pool is dissolved while its blocks stay live.
#[cold]
pub(crate) fn pool_dissolved(scope: &mut Scope, heap: u8, pool: usize) {
    if ensure_room(scope, 2) {
        write(scope.level(), RecordKind::PoolDissolve, None, [address_word(heap, pool as u64)]);
    }
}

/// Records a call that failed.
#[cold]
pub(crate) fn failed(scope: &mut Scope, size: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::AllocFailed, None, [size as u64, stack]);
    }
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
fn write_texts<const N: usize, const TEXTS: usize>(
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

/// A language's function, as language frames refer to it by number.
#[derive(Debug)]
pub(crate) struct LanguageFunction<'a> {
    pub(crate) language: u8,
    pub(crate) number: u32,
    pub(crate) first_line: u32,
    pub(crate) name: &'a [u8],
    pub(crate) file: &'a [u8],
}

/// Writes the record of a function to which the next frames refer.
#[cold]
pub(crate) fn language_function(scope: &mut Scope, function: &LanguageFunction<'_>) {
    let fixed = [
        u64::from(function.language) << 32 | u64::from(function.number),
        u64::from(function.first_line),
        (function.name.len() as u64) << 32 | function.file.len() as u64,
    ];
    write_texts(scope, RecordKind::Function, fixed, [function.name, function.file]);
}

/// Records an interpreter whose frames are not read because its version is unknown. `what` is its
/// language (upper half) and version.
#[cold]
pub(crate) fn language_unknown(scope: &mut Scope, what: u64) {
    if ensure_room(scope, 2) {
        write(scope.level(), RecordKind::UnknownLanguage, None, [what]);
    }
}
