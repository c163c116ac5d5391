//! Joins a native stack with the frames of an interpreter, which are in runs.
//!
//! Each run of language frames belongs to one call of the evaluating function, and is inwards of
//! it. The call is recognised by an address in it: the native frame in whose part of the stack the
//! address lies. The joined stack is a function of the two stacks, so its node is found by their
//! hashes. The frames are joined only for a new pair.

use crate::frames::frame::Frame;
use crate::languages::pairs::{Pair, Pairs};
use crate::languages::path::Path;

/// A language frame with its native position.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunFrame {
    /// Language, function and line; 0: the frame is not shown.
    pub(super) place: u64,
    /// An address in the part of the stack of the call that runs the frame; 0 if unknown.
    pub(super) join: usize,
}

/// Puts language frames, outermost first, where the native frames are that run them; `shown` of
/// them are shown. Returns the node of the joined stack, which is stored under `pair`; `None` if it
/// cannot be made.
pub(super) fn join(
    natives: &[Frame],
    (frames, shown): (impl Iterator<Item = RunFrame>, usize),
    (pairs, pair): (&mut Pairs, Pair),
) -> Option<u32> {
    let mut path = Path::of_frames(natives.len().wrapping_add(shown));
    let mut frames = frames.peekable();
    let mut add_runs = |path: &mut Path, lowest: usize| {
        while let Some(frame) = frames.next_if(|frame| frame.join >= lowest) {
            if frame.place != 0 {
                // Plus one, like a return address, which lies after its call.
                path.add(frame.place.wrapping_add(1));
            }
        }
    };
    if let Some(outermost) = natives.first() {
        // A frame that lies where the outermost call begins is run by it.
        add_runs(&mut path, outermost.sp.saturating_add(1));
    }
    for native in natives {
        path.add(native.pc as u64);
        add_runs(&mut path, native.sp);
    }
    add_runs(&mut path, 0);
    let node = path.finish(pair.hash())?;
    pairs.keep(pair, node);
    Some(node)
}
