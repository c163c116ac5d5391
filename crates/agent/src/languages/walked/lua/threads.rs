//! Lua's threads that run on a native stack, innermost first.
//!
//! The same way through native code has them at the same places of its stack, so that the places
//! are kept by the native stack's node; what lies there is looked at each time. Two places are kept
//! of each thread and have to agree, as a word of a stack may be one that is left of another call.

use crate::languages::copied_memory::CopiedMemory;
use crate::languages::readable::Readable;
use crate::languages::walked::Walk;

/// What a thread is told by, and where it points to the native stack.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) bytes: usize,
    /// Where the kind of object stands, and a thread's.
    pub(super) kind: (usize, u8),
    /// The state that all threads share, and where the main thread is from there.
    pub(super) global: usize,
    pub(super) main: Main,
    /// The call on the native stack that runs it.
    pub(super) anchor: usize,
    /// Where that call has the thread; 0: nowhere.
    pub(super) names_itself: usize,
}

/// Where the main thread is.
#[derive(Debug)]
pub(super) enum Main {
    /// Its address stands in the shared state.
    At(usize),
    /// It lies so many bytes before it.
    Before(usize),
}

/// A thread that runs, or has resumed one that does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Running {
    pub(super) thread: usize,
    /// Where on the native stack.
    pub(super) anchor: usize,
}

/// Threads of a stack that are looked at.
const THREADS_MAX: usize = 6;
/// Those of a stack.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: [Running; THREADS_MAX],
    count: usize,
}

impl Threads {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Running> {
        self.all.iter().take(self.count)
    }

    fn push(&mut self, running: Running) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = running;
            self.count = self.count.wrapping_add(1);
        }
    }
}

const ENTRIES: usize = 1024;
/// Words of a stack that are looked at.
const WORDS_MAX: usize = 1 << 15;
const KEPT: u8 = 1;

/// Where a native stack has threads, by its node. All zero: nothing is known.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slots {
    entries: [Entry; ENTRIES],
    epoch: usize,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Entry {
    node: u32,
    state: u8,
    count: u8,
    /// What the instruction was that had been put away last, plus one; `VARIES`: not always the
    /// same. (A way through native code begins with one kind of instruction: where that is put away
    /// first, it is this one.)
    saved: u16,
    /// The first place of each, in words, and the last one inwards of the call that runs it.
    places: [(u16, u16); THREADS_MAX],
    /// What the threads share.
    global: usize,
}

const VARIES: u16 = u16::MAX;

impl Slots {
    fn entry(&mut self, node: u32) -> &mut Entry {
        let place = (node as usize).wrapping_mul(0x9e37_79b1) >> 12 & ENTRIES.wrapping_sub(1);
        // SAFETY: inside of the array.
        let entry = unsafe { self.entries.get_unchecked_mut(place) };
        if entry.node != node {
            *entry = Entry { node, ..Entry::default() };
        }
        entry
    }

    /// Those of a native stack are to be found anew.
    pub(crate) fn forget_those_of(&mut self, node: u32) {
        let entry = self.entry(node);
        *entry = Entry { node, saved: entry.saved, ..Entry::default() };
    }

    /// Each is to be found anew.
    fn forget(&mut self) {
        for entry in &mut self.entries {
            *entry = Entry { node: entry.node, saved: entry.saved, ..Entry::default() };
        }
    }

    /// The same, if it was found at another time.
    pub(crate) fn forget_before(&mut self, epoch: usize) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.forget();
        }
    }
}

/// Bytes of the largest thread.
const THREAD_BYTES_MAX: usize = 256;

/// A thread as it was copied.
struct Copied<'c> {
    bytes: &'c [u8],
    shape: &'c Shape,
}

impl<'c> Copied<'c> {
    /// `None`: what lies there is none.
    fn of(
        memory: &CopiedMemory,
        shape: &'c Shape,
        thread: usize,
        into: &'c mut [u8; THREAD_BYTES_MAX],
    ) -> Option<Self> {
        let bytes = into.get_mut(..shape.bytes)?;
        memory.copy(thread, bytes)?;
        let (kind_at, kind) = shape.kind;
        (*bytes.get(kind_at)? == kind).then_some(Self { bytes, shape })
    }

    fn word(&self, at: usize) -> Option<usize> {
        Some(usize::from_ne_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    fn global(&self) -> Option<usize> {
        self.word(self.shape.global)
    }

    /// Where it runs, without the marks in its lowest bits.
    fn anchor(&self) -> Option<usize> {
        Some(self.word(self.shape.anchor)? & !7)
    }
}

/// Where a thread runs on the native stack (0: nowhere), and the state that it shares, if there is
/// one at an address.
fn anchor_of(memory: &CopiedMemory, shape: &Shape, thread: usize) -> Option<(usize, usize)> {
    let mut room = [0; THREAD_BYTES_MAX];
    let copied = Copied::of(memory, shape, thread, &mut room)?;
    let (global, anchor) = (copied.global()?, copied.anchor()?);
    let main = match shape.main {
        Main::At(offset) => memory.word(global.checked_add(offset)?)?,
        Main::Before(bytes) => global.checked_sub(bytes)?,
    };
    if main != thread {
        let mut room = [0; THREAD_BYTES_MAX];
        if Copied::of(memory, shape, main, &mut room)?.global()? != global {
            return None;
        }
    }
    let is_right = anchor == 0
        || shape.names_itself == 0
        || memory.word(anchor.wrapping_add(shape.names_itself)) == Some(thread);
    Some((if is_right { anchor } else { 0 }, global))
}

/// The same of a thread that was found to share `global` before: each copy is a system call, so
/// that one has to do.
fn anchor_again(
    memory: &CopiedMemory,
    readable: &mut Readable,
    shape: &Shape,
    (thread, global, low): (usize, usize, usize),
) -> Option<usize> {
    let mut room = [0; THREAD_BYTES_MAX];
    let copied = Copied::of(memory, shape, thread, &mut room)?;
    let anchor = copied.anchor()?;
    if copied.global()? != global {
        return None;
    }
    let is_right = shape.names_itself == 0
        || ((low..readable.end_of(low)).contains(&anchor)
            && readable.word(anchor.wrapping_add(shape.names_itself)) == Some(thread));
    is_right.then_some(anchor)
}

/// The same of LuaJIT's main thread, which is there for as long as any is.
fn anchor_of_main(readable: &mut Readable, shape: &Shape, thread: usize) -> Option<usize> {
    let anchor = readable.word(thread.wrapping_add(shape.anchor))? & !7;
    (readable.word(anchor.wrapping_add(shape.names_itself))? == thread).then_some(anchor)
}

/// The threads that run on the native stack of the event.
///
/// A word that is left of another call may lead to a thread that is gone, and to memory that is.
pub(super) fn running(walk: &mut Walk<'_>, shape: &Shape) -> Threads {
    let (low, entry) = (walk.start.sp, *walk.slots.entry(walk.native));
    let mut memory = None;
    if entry.state == KEPT {
        let mut threads = Threads::default();
        for &(first, last) in entry.places.iter().take(usize::from(entry.count)) {
            let mut word =
                |place: u16| walk.readable.word(low.wrapping_add(usize::from(place).wrapping_mul(8)));
            let outer = threads.all.get(threads.count.wrapping_sub(1)).map_or(low, |outer| outer.anchor);
            let Some(thread) = word(first) else { break };
            if word(last) != Some(thread) {
                break;
            }
            let anchor = match shape.main {
                Main::Before(bytes) if entry.global.wrapping_sub(bytes) == thread => {
                    anchor_of_main(walk.readable, shape, thread)
                }
                _ => {
                    memory = memory.or_else(CopiedMemory::open);
                    let known = (thread, entry.global, low);
                    memory.as_ref().and_then(|memory| anchor_again(memory, walk.readable, shape, known))
                }
            };
            if let Some(anchor) = anchor.filter(|&anchor| anchor > outer) {
                threads.push(Running { thread, anchor });
            }
        }
        if threads.count == usize::from(entry.count) {
            return threads;
        }
    }
    walk.readable.forget();
    match memory.or_else(CopiedMemory::open) {
        Some(memory) => find(walk, shape, &memory),
        None => Threads::default(),
    }
}

/// The same by all words of the stack.
#[cold]
#[inline(never)]
fn find(walk: &mut Walk<'_>, shape: &Shape, memory: &CopiedMemory) -> Threads {
    let low = walk.start.sp;
    let high = walk.readable.end_of(low);
    let mut found = [(Running::default(), (0_u16, 0_u16)); THREADS_MAX];
    let (mut count, mut global) = (0_usize, 0);
    let mut is_settled = true;
    for place in 0..(high.saturating_sub(low) / 8).min(WORDS_MAX) {
        let Some(word) = walk.readable.word(low.wrapping_add(place.wrapping_mul(8))) else { break };
        if word & 7 != 0 || (low..high).contains(&word) || word >> 47 != 0 {
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
        if !walk.readable.has(word, shape.bytes) {
            continue;
        }
        let Some((anchor, of_word)) = anchor_of(memory, shape, word) else { continue };
        if !(low..high).contains(&anchor) {
            // It may run the next time.
            is_settled = false;
        } else if let Some(entry) = found.get_mut(count) {
            *entry = (Running { thread: word, anchor }, (place, place));
            count = count.wrapping_add(1);
            global = of_word;
        } else {
            is_settled = false;
        }
    }
    let found = found.get_mut(..count).unwrap_or_default();
    found.sort_unstable_by_key(|(running, _)| running.anchor);
    let mut threads = Threads::default();
    let entry = walk.slots.entry(walk.native);
    for (running, places) in found.iter() {
        if let Some(place) = entry.places.get_mut(threads.count) {
            *place = *places;
        }
        threads.push(*running);
    }
    entry.global = global;
    entry.count = count as u8;
    entry.state = if count != 0 || is_settled { KEPT } else { 0 };
    threads
}

/// The word of the native stack, below `end`, that is the instruction which is running: one that
/// `is_one` says could be it. `saved`: the one that was put away last, and what it is.
pub(super) fn instruction(
    walk: &mut Walk<'_>,
    end: usize,
    (saved, saved_kind): (usize, u32),
    is_one: &mut dyn FnMut(&mut Readable, usize) -> bool,
) -> Option<usize> {
    let low = walk.start.sp;
    let entry = walk.slots.entry(walk.native);
    let kind = (saved_kind as u16).wrapping_add(1);
    if entry.saved != kind && entry.saved != VARIES {
        entry.saved = if entry.saved == 0 { kind } else { VARIES };
    }
    let varies = entry.saved == VARIES;
    let mut found = None;
    for place in 0..(end.saturating_sub(low) / 8).min(WORDS_MAX) {
        let Some(word) = walk.readable.word(low.wrapping_add(place.wrapping_mul(8))) else { break };
        if word & 3 == 0 && is_one(walk.readable, word) {
            found = Some(word);
        } else if word == saved && !varies {
            found = None;
        }
    }
    found
}
