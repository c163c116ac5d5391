//! The last frames of a thread's level, and the present ones at the cost of what changed.
//!
//! ```text
//! walked  innermost                       outermost      as the interpreter has them, all of them
//! kept    outermost                       innermost      with what each stands for
//! ```
//!
//! Each frame that is walked is compared with the one kept at its place from the outer end: code,
//! instruction, and what tells the code from another. The hash of a stack is the sum of what each
//! frame gives at its place, so that a change costs one frame.

use heapr_ring::sys;
use heapr_wire::{LINE_MAX, language_place};

use crate::frames::frame::Start;
use crate::languages::answers::{self, Answers};
use crate::languages::code_table;
use crate::languages::pairs::Pairs;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::{Described, Dialect, Walk, Walked, lua};
use crate::record::thread::Scope;
use crate::tree;

/// Innermost frames that are read.
const CAPACITY: usize = 1 << 14;
const ANSWERS: usize = 4096;
const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 1024;

/// A frame that was read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct WalkedFrame {
    walked: Walked,
    /// Language, function and line; 0: nothing that is shown.
    pub(crate) place: u64,
    /// What it gives to the stack's hash.
    part: u64,
    /// Where the evaluating function stands that runs it.
    pub(crate) join: usize,
}

/// See the module. All zero: nothing was read.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct KeptWalk {
    depth: usize,
    /// Frames that are shown, and the sum of what all give.
    shown: usize,
    sum: u64,
    /// Outermost first.
    frames: [WalkedFrame; CAPACITY],
    /// Innermost first.
    walked: [Walked; CAPACITY],
    pub(crate) pairs: Pairs,
    slots: lua::Slots,
    describing: Describing,
}

/// What frames stand for, and room to find it.
#[derive(Debug)]
#[repr(C)]
struct Describing {
    answers: Answers<ANSWERS>,
    readable: Readable,
    name: [u8; NAME_BYTES_MAX],
    file: [u8; FILE_BYTES_MAX],
}

impl KeptWalk {
    /// Maps one. Wiped in a forked child, whose recorder's entry knows no functions yet.
    #[cold]
    pub(crate) fn allocate() -> *mut Self {
        sys::map_anonymous(size_of::<Self>(), true).map_or(core::ptr::null_mut(), <*mut u8>::cast)
    }

    /// The hash of the kept stack; 0: no frame is shown.
    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        if self.shown == 0 { 0 } else { self.sum }
    }

    /// Outermost first.
    pub(crate) fn frames(&self) -> &[WalkedFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// How many of the frames are shown.
    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    /// Calls of the evaluating function that run them.
    pub(crate) fn runs(&self) -> usize {
        self.frames().iter().filter(|frame| frame.walked.is_entry).count()
    }

    /// Nothing is kept any more, and what was remembered is looked at anew, for the stack whose
    /// native frames have this node.
    pub(crate) fn forget(&mut self, native: u32) {
        (self.depth, self.shown, self.sum) = (0, 0, 0);
        self.describing.answers.forget();
        self.slots.forget_those_of(native);
    }

    /// Makes the kept frames those of the calling thread.
    pub(crate) fn follow(&mut self, scope: &mut Scope, dialect: &Dialect, (start, native): (Start, u32)) {
        let Self { walked, describing, slots, .. } = self;
        if scope.level().has_moved {
            // Interpreters' own stacks are such blocks, and may have been unmapped.
            describing.readable.forget();
        }
        let mut count = 0_usize;
        let mut walk = Walk { readable: &mut describing.readable, start, native, slots };
        (dialect.walk)(&mut walk, &mut |frame| {
            let Some(out) = walked.get_mut(count) else { return false };
            *out = frame;
            count = count.wrapping_add(1);
            true
        });
        self.drop_from(count);
        for number in 0..count {
            let inwards = count.wrapping_sub(1).wrapping_sub(number);
            // SAFETY: both are below the capacity, as `count` is at most that.
            let (walked, kept) =
                unsafe { (self.walked.get_unchecked(inwards), self.frames.get_unchecked(number)) };
            if number >= self.depth || *walked != kept.walked {
                let walked = *walked;
                self.set(scope, dialect, number, walked);
            }
        }
        self.depth = count;
    }

    /// The kept frames from a place on are gone.
    fn drop_from(&mut self, count: usize) {
        for frame in self.frames.get(count..self.depth).unwrap_or_default() {
            self.sum = self.sum.wrapping_sub(frame.part);
            self.shown = self.shown.wrapping_sub(usize::from(frame.place != 0));
        }
        self.depth = self.depth.min(count);
    }

    /// Another frame is at a place.
    #[cold]
    #[inline(never)]
    fn set(&mut self, scope: &mut Scope, dialect: &Dialect, number: usize, walked: Walked) {
        let place = if walked.code == 0 { 0 } else { self.describing.place(scope, dialect, &walked) };
        let is_entry = u64::from(walked.is_entry);
        let part = tree::part_hash(number, place | 1, is_entry << 1 | u64::from(place == 0));
        let Some(frame) = self.frames.get_mut(number) else { return };
        if number < self.depth {
            self.sum = self.sum.wrapping_sub(frame.part);
            self.shown = self.shown.wrapping_sub(usize::from(frame.place != 0));
        }
        *frame = WalkedFrame { walked, place, part, join: 0 };
        self.sum = self.sum.wrapping_add(part);
        self.shown = self.shown.wrapping_add(usize::from(place != 0));
    }

    /// Gives each frame the place of the call that runs it: `calls` from the innermost on.
    pub(crate) fn join(&mut self, mut calls: impl Iterator<Item = usize>) {
        let mut join = calls.next().unwrap_or(usize::MAX);
        for frame in self.frames.get_mut(..self.depth).unwrap_or_default().iter_mut().rev() {
            frame.join = join;
            if frame.walked.is_entry {
                join = calls.next().unwrap_or(usize::MAX);
            }
        }
    }
}

impl Describing {
    /// What a frame stands for, as it is remembered or found.
    fn place(&mut self, scope: &mut Scope, dialect: &Dialect, frame: &Walked) -> u64 {
        let key = answers::key([frame.code, frame.check, frame.at]);
        if let Some(place) = self.answers.find(key) {
            return place;
        }
        // What was mapped when the last function was looked at may be gone.
        self.readable.forget();
        let mut described = Described {
            name: Text { out: &mut self.name, bytes: 0 },
            file: Text { out: &mut self.file, bytes: 0 },
            first_line: 0,
            line: 0,
        };
        // What cannot be read now may be read the next time: it is not remembered.
        if (dialect.describe)(&mut self.readable, frame, &mut described).is_none() {
            return 0;
        }
        let Described { name, file, first_line, line } = described;
        let name = name.out.get(..name.bytes).unwrap_or_default();
        let file = file.out.get(..file.bytes).unwrap_or_default();
        let number = code_table::number_of(scope, dialect.number, (name, file, first_line));
        let place = language_place(dialect.number, number, line.min(LINE_MAX));
        self.answers.keep(key, place);
        place
    }
}
