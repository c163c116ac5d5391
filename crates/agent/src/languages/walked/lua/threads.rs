//! Lua's threads that run on a native stack, innermost first.
//!
//! The same path through native code has them at the same offsets of its stack. So the offsets are
//! cached by the native stack's node, and the words there are checked each time. Two offsets are
//! stored of each thread and must agree, as a word of a stack may be a remnant of another call.

use core::ops::Range;

use heapr_known::machine::HERE;

use crate::arch::ADDRESS_END;
use crate::languages::copied_memory::CopiedMemory;
use crate::languages::readable::{Readable, word};
use crate::languages::walked::Walk;
use crate::record::thread_states;

/// Structure of a thread, by which one is recognised, and its pointer to the native stack.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) bytes: usize,
    /// Offset of the kind of object, and a thread's kind.
    pub(super) kind: (usize, u8),
    /// Offset of the state that all threads share, and the main thread's location from there.
    pub(super) global: usize,
    pub(super) main: Main,
    /// Offset of the anchor: the call on the native stack that runs the thread.
    pub(super) anchor: usize,
    /// Offset of the thread's address in that call; 0: not stored there.
    pub(super) names_itself: usize,
}

/// Location of the main thread.
#[derive(Debug)]
pub(super) enum Main {
    /// The shared state has its address at this offset.
    At(usize),
    /// The main thread lies so many bytes before the shared state.
    Before(usize),
}

/// A running thread, or one that has resumed a running one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Running {
    pub(super) thread: usize,
    /// Position on the native stack of the call that runs it.
    pub(super) anchor: usize,
}

/// Largest number of threads of a stack.
const THREADS_MAX: usize = 6;
/// Threads of a stack, innermost first.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
pub(crate) struct Threads {
    all: [Running; THREADS_MAX],
    count: usize,
}

impl Threads {
    fn iter(&self) -> impl Iterator<Item = &Running> {
        self.all.iter().take(self.count)
    }

    pub(super) fn first(&self) -> Option<Running> {
        self.iter().next().copied()
    }

    pub(super) fn innermost(&self) -> Option<usize> {
        self.first().map(|running| running.thread)
    }

    pub(super) fn innermost_anchor(&self) -> usize {
        self.first().map_or(0, |running| running.anchor)
    }

    /// Returns the thread that has resumed `thread`.
    pub(super) fn running_outwards_of(&self, thread: usize) -> Option<Running> {
        self.iter().skip_while(|running| running.thread != thread).nth(1).copied()
    }

    pub(super) fn outwards_of(&self, thread: usize) -> Option<usize> {
        self.running_outwards_of(thread).map(|running| running.thread)
    }

    fn push(&mut self, running: Running) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = running;
            self.count = self.count.wrapping_add(1);
        }
    }
}

const ENTRIES: usize = 1024;
/// Number of native stacks without threads that are cached.
const NONES: usize = 2048;
/// Number of entries among which a node's may be. With a single one, two stacks that take turns
/// could displace each other at every event.
const TOGETHER: usize = 4;
/// Largest number of words of a stack that are read.
const WORDS_MAX: usize = 1 << 15;
const REFUSED: usize = 32;
const KEPT: u8 = 1;
const SKIPPED_POWER_MAX: u16 = 12;
/// Number of times that an instruction must be found at an offset before other words are ignored.
const FOUND_ENOUGH: u16 = 8;
const INSTRUCTION_BYTES: usize = 4;
/// Number of registers that a function saves for its caller.
const REGISTERS: u16 = HERE.columns.preserved.len() as u16;

/// Offsets of threads on native stacks, by their nodes. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slots {
    entries: [Entry; ENTRIES],
    /// Nodes of native stacks on which no thread runs, by their numbers.
    nones: [u32; NONES],
    epoch: usize,
    replaced_count: usize,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Entry {
    node: u32,
    state: u8,
    count: u8,
    /// Kind of the instruction that was saved last, plus one; `VARIES`: not always the same. (A
    /// path through native code begins with one kind of instruction. If that kind saves its
    /// position first, the saved one is always it.)
    saved: u16,
    /// The first offset of each thread, in words, and the last one inwards of the call that runs
    /// it.
    places: [(u16, u16); THREADS_MAX],
    /// State that the threads share, and the main thread.
    global: usize,
    main: usize,
    /// Offset at which an instruction was found, in words, plus one; and how often there.
    instruction: u16,
    found_count: u16,
    /// Number of searches without a thread, and number of stacks until the next search.
    failed_count: u16,
    skipped_count: u16,
}

const VARIES: u16 = u16::MAX;

impl Slots {
    /// True if no thread runs on the native stack of a node.
    #[inline(always)]
    pub(crate) fn has_none(&self, node: u32) -> bool {
        self.nones.get(node as usize % NONES).is_some_and(|&none| none == node)
    }

    #[cold]
    #[inline(never)]
    fn note_none(&mut self, node: u32) {
        if let Some(none) = self.nones.get_mut(node as usize % NONES) {
            *none = node;
        }
    }

    #[inline(always)]
    fn entry(&mut self, node: u32) -> &mut Entry {
        let hash = (node as usize).wrapping_mul(0x9e37_79b1) >> 12;
        let first = hash & ENTRIES.wrapping_sub(TOGETHER);
        let last = first.wrapping_add(TOGETHER);
        // SAFETY: inside the array.
        let found = (first..last).find(|&place| unsafe { self.entries.get_unchecked(place).node } == node);
        let place = found.unwrap_or_else(|| self.begin(first, node));
        // SAFETY: inside the array.
        unsafe { self.entries.get_unchecked_mut(place) }
    }

    /// Takes an entry for a node: a free one, or else another node's, in turn.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, first: usize, node: u32) -> usize {
        let set = self.entries.get_mut(first..first.wrapping_add(TOGETHER)).unwrap_or_default();
        let place = set.iter().position(|entry| entry.node == 0).unwrap_or_else(|| {
            self.replaced_count = self.replaced_count.wrapping_add(1);
            self.replaced_count % TOGETHER
        });
        if let Some(entry) = set.get_mut(place) {
            *entry = Entry { node, ..Entry::default() };
        }
        first.wrapping_add(place)
    }

    /// Drops the threads of a native stack, so that they are determined anew.
    ///
    /// The offset of the saved instruction is retained: it is that of the register in which the
    /// interpreter's code has the instruction. One stack alone may not identify this offset.
    /// Adjacent words may have instructions of earlier calls of the same function.
    pub(crate) fn forget_those_of(&mut self, node: u32) {
        let entry = self.entry(node);
        let Entry { saved, instruction, found_count, .. } = *entry;
        *entry = Entry { node, saved, instruction, found_count, ..Entry::default() };
    }

    /// Drops all offsets, so that they are determined anew.
    fn forget(&mut self) {
        for entry in &mut self.entries {
            *entry = Entry { node: entry.node, saved: entry.saved, ..Entry::default() };
        }
        self.nones.fill(0);
    }

    /// Drops all offsets that were determined in another epoch.
    pub(crate) fn forget_before(&mut self, epoch: usize) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.forget();
        }
    }
}

/// Size of the largest thread structure in bytes.
const THREAD_BYTES_MAX: usize = 256;

/// A copied thread structure.
struct Copied<'c> {
    bytes: &'c [u8],
    shape: &'c Shape,
}

impl<'c> Copied<'c> {
    /// Copies the structure at an address; `None` if it is not a thread.
    fn of(
        (readable, memory): (&mut Readable, &mut CopiedMemory),
        shape: &'c Shape,
        thread: usize,
        into: &'c mut [u8; THREAD_BYTES_MAX],
    ) -> Option<Self> {
        let bytes = into.get_mut(..shape.bytes)?;
        if is_alone() {
            // SAFETY: readable, and no other thread exists that could unmap it.
            let found = readable.bytes(thread, bytes.len())?;
            bytes.copy_from_slice(found);
        } else {
            memory.copy(thread, bytes)?;
        }
        let (kind_at, kind) = shape.kind;
        (*bytes.get(kind_at)? == kind).then_some(Self { bytes, shape })
    }

    fn word(&self, at: usize) -> Option<usize> {
        Some(usize::from_ne_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    fn global(&self) -> Option<usize> {
        self.word(self.shape.global)
    }

    /// Returns the anchor, without the marks in its lowest bits.
    fn anchor(&self) -> Option<usize> {
        Some(self.word(self.shape.anchor)? & !7)
    }
}

/// True if no other thread has been seen, which could unmap memory that has just been found
/// readable.
fn is_alone() -> bool {
    thread_states::has_one_thread()
}

/// Returns a thread's anchor on the native stack (0: it does not run), its shared state, and the
/// main thread. Returns `None` if there is no thread at the address.
fn anchor_of(
    (readable, memory): (&mut Readable, &mut CopiedMemory),
    shape: &Shape,
    thread: usize,
) -> Option<(usize, usize, usize)> {
    let mut room = [0; THREAD_BYTES_MAX];
    let copied = Copied::of((readable, memory), shape, thread, &mut room)?;
    let (global, anchor) = (copied.global()?, copied.anchor()?);
    let main = match shape.main {
        Main::At(offset) if is_alone() => readable.word(global.checked_add(offset)?)?,
        Main::At(offset) => memory.word(global.checked_add(offset)?)?,
        Main::Before(bytes) => global.checked_sub(bytes)?,
    };
    if main != thread {
        let mut room = [0; THREAD_BYTES_MAX];
        if Copied::of((readable, memory), shape, main, &mut room)?.global()? != global {
            return None;
        }
    }
    let itself = anchor.wrapping_add(shape.names_itself);
    let is_right = anchor == 0
        || shape.names_itself == 0
        || (if is_alone() { readable.word(itself) } else { memory.word(itself) }) == Some(thread);
    Some((if is_right { anchor } else { 0 }, global, main))
}

/// Returns the anchor of a thread that shared `global` before, or of another one that does. The
/// main thread exists as long as any other.
#[inline(always)]
fn anchor_again(
    walk: &mut Walk,
    shape: &Shape,
    thread: usize,
    (global, main): (usize, usize),
) -> Option<usize> {
    let readable = &mut walk.readable;
    let anchor = if thread == main || is_alone() {
        if !readable.has(thread, shape.bytes) {
            return None;
        }
        // SAFETY: readable.
        let field = |at: usize| unsafe { word(thread.wrapping_add(at)) };
        let (kind_at, kind) = shape.kind;
        let is_one =
            (field(kind_at & !7) >> (kind_at % 8 * 8)) as u8 == kind && field(shape.global) == global;
        if !is_one {
            return None;
        }
        field(shape.anchor) & !7
    } else {
        let mut room = [0; THREAD_BYTES_MAX];
        let copied = Copied::of((readable, &mut CopiedMemory::default()), shape, thread, &mut room)?;
        if copied.global()? != global {
            return None;
        }
        copied.anchor()?
    };
    if shape.names_itself != 0 {
        let low = walk.start.sp;
        let is_right = (low..readable.end_of(low)).contains(&anchor)
            && readable.word(anchor.wrapping_add(shape.names_itself)) == Some(thread);
        return is_right.then_some(anchor);
    }
    Some(anchor)
}

/// Finds the threads that run on the native stack of the event.
///
/// A word that is a remnant of another call may lead to a thread that is gone, and to memory that
/// is unmapped.
#[inline(always)]
pub(super) fn follow(walk: &mut Walk, shape: &Shape) {
    walk.threads = running(walk, shape);
}

#[inline(always)]
fn running(walk: &mut Walk, shape: &Shape) -> Threads {
    let (low, native) = (walk.start.sp, walk.native);
    let entry = *walk.slots.entry(native);
    if entry.state == KEPT {
        let mut threads = Threads::default();
        for &(first, last) in entry.places.iter().take(usize::from(entry.count)) {
            let mut word =
                |place: u16| walk.readable.word(low.wrapping_add(usize::from(place).wrapping_mul(8)));
            let outer = threads.all.get(threads.count.wrapping_sub(1)).map_or(low, |outer| outer.anchor);
            let Some(thread) = word(first) else { break };
            if first != last && word(last) != Some(thread) {
                break;
            }
            let anchor = anchor_again(walk, shape, thread, (entry.global, entry.main));
            if let Some(anchor) = anchor.filter(|&anchor| anchor > outer) {
                threads.push(Running { thread, anchor });
            }
        }
        if threads.count == usize::from(entry.count) {
            if entry.count == 0 {
                walk.slots.note_none(native);
            }
            return threads;
        }
    } else if entry.skipped_count != 0 {
        walk.slots.entry(native).skipped_count = entry.skipped_count.wrapping_sub(1);
        return Threads::default();
    }
    walk.readable.doubt();
    find(walk, shape, &mut CopiedMemory::default())
}

/// The last words of a stack that do not lead to readable memory.
#[derive(Default)]
struct Refused {
    words: [usize; REFUSED],
    next: usize,
}

impl Refused {
    fn has(&self, word: usize) -> bool {
        self.words.contains(&word)
    }

    fn keep(&mut self, word: usize) {
        if let Some(place) = self.words.get_mut(self.next % REFUSED) {
            *place = word;
        }
        self.next = self.next.wrapping_add(1);
    }
}

/// Finds the threads by all words of the stack.
#[cold]
#[inline(never)]
fn find(walk: &mut Walk, shape: &Shape, memory: &mut CopiedMemory) -> Threads {
    let low = walk.start.sp;
    let high = walk.readable.end_of(low);
    let mut found = [(Running::default(), (0_u16, 0_u16)); THREADS_MAX];
    let (mut count, mut global, mut main) = (0_usize, 0, 0);
    let mut is_settled = true;
    // The same unusable words occur again and again, and each costs a question to the kernel.
    let mut refused = Refused::default();
    for place in 0..(high.saturating_sub(low) / 8).min(WORDS_MAX) {
        let Some(word) = walk.readable.word(low.wrapping_add(place.wrapping_mul(8))) else { break };
        if word & 7 != 0 || (low..high).contains(&word) || word >= ADDRESS_END {
            continue;
        }
        let place = place as u16;
        if let Some((running, places)) =
            found.iter_mut().take(count).find(|(running, _)| running.thread == word)
        {
            if low.wrapping_add(usize::from(place).wrapping_mul(8)) < running.anchor {
                places.1 = place;
            }
            continue;
        }
        if refused.has(word) {
            continue;
        }
        if !walk.readable.has(word, shape.bytes) {
            refused.keep(word);
            continue;
        }
        let found_there = anchor_of((&mut walk.readable, memory), shape, word);
        let Some((anchor, of_word, main_of_word)) = found_there else { continue };
        if !(low..high).contains(&anchor) {
            // The thread may run the next time.
            is_settled = false;
        } else if let Some(entry) = found.get_mut(count) {
            *entry = (Running { thread: word, anchor }, (place, place));
            count = count.wrapping_add(1);
            (global, main) = (of_word, main_of_word);
        } else {
            is_settled = false;
        }
    }
    let found = found.get_mut(..count).unwrap_or_default();
    found.sort_unstable_by_key(|(running, _)| running.anchor);
    let mut threads = Threads::default();
    let entry = walk.slots.entry(walk.native);
    let is_again = entry.state == KEPT;
    for (running, places) in found.iter() {
        if let Some(place) = entry.places.get_mut(threads.count) {
            // The inner word may be a remnant of another call: it was not there again.
            *place = if is_again { (places.1, places.1) } else { *places };
        }
        threads.push(*running);
    }
    (entry.global, entry.main) = (global, main);
    entry.count = count as u8;
    entry.state = if count != 0 || is_settled { KEPT } else { 0 };
    if entry.state != KEPT {
        // The searches become rarer: most of such stacks belong to code that makes or ends a state.
        entry.skipped_count = 1 << entry.failed_count.min(SKIPPED_POWER_MAX);
        entry.failed_count = entry.failed_count.saturating_add(1);
    }
    threads
}

/// An instruction that is searched on the native stack.
pub(super) struct Wanted {
    /// Address range of its function's code.
    pub(super) code: Range<usize>,
    /// The instruction that was saved last, and its kind.
    pub(super) saved: usize,
    pub(super) saved_kind: u32,
}

/// Returns the word of the native stack that is the running instruction. It must satisfy `is_one`,
/// and lie inwards of the innermost call in the function `low..high`.
///
/// The same path through native code has it at the same offset, or not at all.
pub(super) fn instruction(
    walk: &mut Walk,
    (low, high): (usize, usize),
    wanted: &Wanted,
    is_one: impl Fn(&mut Readable, usize) -> bool,
) -> Option<usize> {
    let start = walk.start;
    let is_in_code = |word: usize| wanted.code.contains(&word) && word & 3 == 0;
    let is_call = |word: usize| word > low && word <= high;
    let entry = walk.slots.entry(walk.native);
    let kind = (wanted.saved_kind as u16).wrapping_add(1);
    if entry.saved != kind && entry.saved != VARIES {
        entry.saved = if entry.saved == 0 { kind } else { VARIES };
    }
    let varies = entry.saved == VARIES;
    let (known, found_count) = (entry.instruction, entry.found_count);
    if known != 0 && (varies || found_count >= FOUND_ENOUGH) {
        let place = start.sp.wrapping_add(usize::from(known).wrapping_sub(1).wrapping_mul(8));
        if let Some(word) = walk.readable.word(place).filter(|&word| is_in_code(word))
            && is_one(&mut walk.readable, word)
        {
            return Some(word);
        }
    }
    if is_call(start.pc) {
        return None;
    }
    let end = walk.threads.innermost_anchor().min(walk.readable.end_of(start.sp));
    let mut found = None;
    for place in 0..(end.saturating_sub(start.sp) / 8).min(WORDS_MAX) {
        // SAFETY: below the end of the readable memory.
        let word = unsafe { word(start.sp.wrapping_add(place.wrapping_mul(8))) };
        if is_in_code(word) && is_one(&mut walk.readable, word) {
            let place = (place as u16).wrapping_add(1);
            // A saved register beside it may contain the address of the instruction itself, which
            // is after the one before.
            let is_itself = found.is_some_and(|(behind, inner): (usize, u16)| {
                behind.wrapping_sub(word) == INSTRUCTION_BYTES && place.wrapping_sub(inner) < REGISTERS
            });
            if !is_itself {
                found = Some((word, place));
            }
        } else if word == wanted.saved {
            if !varies {
                found = None;
            }
        } else if is_call(word) {
            break;
        }
    }
    let entry = walk.slots.entry(walk.native);
    if let Some((_, place)) = found {
        let is_again = entry.instruction == place;
        entry.found_count = if is_again { entry.found_count.saturating_add(1) } else { 1 };
        entry.instruction = place;
    }
    found.map(|(word, _)| word)
}
