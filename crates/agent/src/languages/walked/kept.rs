//! The frames of a thread's level as they were read last, and what is remembered of code.

use heapr_ring::sys;
use heapr_wire::{LINE_MAX, language_place};

use crate::languages::code_table;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::{Described, Dialect, Walked};
use crate::record::thread::Scope;
use crate::tree;

/// Innermost frames that are read.
const CAPACITY: usize = 1 << 14;
const PAIRS: usize = 1024;
const ANSWERS: usize = 4096;
const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 1024;

/// A frame that was read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct WalkedFrame {
    /// Language, function and line; 0: nothing that is shown.
    pub(crate) place: u64,
    /// Where the evaluating function stands that runs it.
    pub(crate) join: usize,
    is_entry: bool,
}

/// See the module. All zero: nothing was read.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct KeptWalk {
    depth: usize,
    hash: u64,
    /// Innermost first.
    frames: [WalkedFrame; CAPACITY],
    /// Nodes of pairs of a native stack and one of the language's, by their hashes.
    pairs: [(u64, u32); PAIRS],
    answers: [(u64, u64); ANSWERS],
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

    /// Where the node of a pair with this hash is remembered.
    #[inline(always)]
    pub(crate) fn pair(&mut self, hash: u64) -> &mut (u64, u32) {
        // SAFETY: inside of the array.
        unsafe { &mut *self.pairs.as_mut_ptr().wrapping_add((hash >> 40) as usize % PAIRS) }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn frames(&self) -> &[WalkedFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// How many of the frames are shown.
    pub(crate) fn shown(&self) -> usize {
        self.frames().iter().filter(|frame| frame.place != 0).count()
    }

    /// What was remembered is looked at anew.
    pub(crate) fn forget_answers(&mut self) {
        self.answers.fill((0, 0));
    }

    /// Reads the frames of the calling thread.
    pub(crate) fn follow(&mut self, scope: &mut Scope, dialect: &Dialect) {
        let Self { frames, answers, readable, name, file, .. } = self;
        let mut walked = [Walked { code: 0, check: 0, at: 0, is_entry: false }; 64];
        let (mut depth, mut waiting) = (0_usize, 0_usize);
        let mut take = |scope: &mut Scope, readable: &mut Readable, walked: &[Walked], depth: &mut usize| {
            for frame in walked {
                let place = if frame.code == 0 {
                    0
                } else {
                    place(scope, dialect, readable, answers, (name, file), frame)
                };
                let Some(out) = frames.get_mut(*depth) else { return };
                *out = WalkedFrame { place, join: 0, is_entry: frame.is_entry };
                *depth = depth.wrapping_add(1);
            }
        };
        // The walk reads with what is readable, and so does the description: in turns.
        let mut skipped = 0_usize;
        loop {
            let mut seen = 0_usize;
            (dialect.walk)(readable, &mut |frame| {
                if seen < skipped {
                    seen = seen.wrapping_add(1);
                    return true;
                }
                let Some(out) = walked.get_mut(waiting) else { return false };
                *out = frame;
                waiting = waiting.wrapping_add(1);
                true
            });
            let count = waiting;
            take(scope, readable, walked.get(..count).unwrap_or_default(), &mut depth);
            waiting = 0;
            skipped = skipped.wrapping_add(count);
            if count < walked.len() || skipped >= CAPACITY {
                break;
            }
        }
        self.depth = depth;
        let mut hash = 0_u64;
        for (number, frame) in self.frames().iter().rev().enumerate() {
            let part = tree::part_hash(number, frame.place, u64::from(frame.is_entry));
            hash = hash.wrapping_add(if frame.place == 0 { 1 } else { part });
        }
        self.hash = if self.shown() == 0 { 0 } else { hash };
    }

    /// Gives each frame the place of the call that runs it: `calls` from the innermost on.
    pub(crate) fn join(&mut self, mut calls: impl Iterator<Item = usize>) {
        let mut join = calls.next().unwrap_or(usize::MAX);
        for frame in self.frames.get_mut(..self.depth).unwrap_or_default() {
            frame.join = join;
            if frame.is_entry {
                join = calls.next().unwrap_or(usize::MAX);
            }
        }
    }
}

/// What a frame stands for, as it is remembered or found.
#[inline(always)]
fn place(
    scope: &mut Scope,
    dialect: &Dialect,
    readable: &mut Readable,
    answers: &mut [(u64, u64); ANSWERS],
    (name, file): (&mut [u8], &mut [u8]),
    frame: &Walked,
) -> u64 {
    let key = (frame.code as u64 ^ (frame.check as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (frame.at as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let key = (key ^ key >> 31).wrapping_mul(0xff51_afd7_ed55_8ccd) | 1;
    let answer = answers.get_mut((key >> 40) as usize % ANSWERS);
    if let Some(&mut (known, place)) = answer
        && known == key
    {
        return place;
    }
    // What was mapped when the last function was looked at may be gone.
    readable.forget();
    let mut described = Described {
        name: Text { out: name, bytes: 0 },
        file: Text { out: file, bytes: 0 },
        first_line: 0,
        line: 0,
    };
    let found = (dialect.describe)(readable, frame, &mut described);
    let place = if found.is_none() {
        0
    } else {
        let Described { name, file, first_line, line } = described;
        let name = name.out.get(..name.bytes).unwrap_or_default();
        let file = file.out.get(..file.bytes).unwrap_or_default();
        let number = code_table::number_of(scope, dialect.number, (name, file, first_line));
        language_place(dialect.number, number, line.min(LINE_MAX))
    };
    if let Some(answer) = answers.get_mut((key >> 40) as usize % ANSWERS) {
        *answer = (key, place);
    }
    place
}
