//! Frames of the groups of a difference, as a report has those of one trace.

use hashbrown::HashMap;

use heapr_query::{FrameView, GroupBy, Result};

use crate::difference::{FrameUnion, Side};

/// Frames of each group of a difference.
#[derive(Debug)]
pub struct DifferenceFrames<'a> {
    by_key: HashMap<u32, Vec<FrameView<'a>>>,
}

impl<'a> DifferenceFrames<'a> {
    /// Reads the stacks of both sides. Module names are those of the second side if it has the
    /// frame.
    ///
    /// # Errors
    /// Never for what [`crate::Explorer::select`] made.
    pub fn read(union: &FrameUnion, sides: [Side<'a>; 2], by: GroupBy) -> Result<Self> {
        let mut by_key: HashMap<u32, Vec<FrameView<'a>>> = HashMap::new();
        for (number, side) in sides.into_iter().enumerate() {
            let (tree, trace) = (side.explorer.tree(), &**side.explorer.trace());
            side.explorer.culled(side.selection, side.cull, GroupBy::Stacks)?.for_each(|row, stack| {
                let views = shown(tree.views(trace, row.stack, stack), by);
                match by_key.entry(union.group_key(number, stack, by)) {
                    hashbrown::hash_map::Entry::Vacant(entry) => drop(entry.insert(views)),
                    hashbrown::hash_map::Entry::Occupied(mut entry) => join(entry.get_mut(), &views),
                }
            })?;
        }
        Ok(Self { by_key })
    }

    /// Returns the frames of a group, innermost first: a stack, one frame, one frame with only a
    /// module, or none (no stack was taken). File and line are `None`, and the offset is 0, if the
    /// stacks of the group differ in them.
    #[must_use]
    pub fn of(&self, key: u32) -> &[FrameView<'a>] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// Keeps of a stack's frames those that tell its group.
fn shown(mut views: Vec<FrameView<'_>>, by: GroupBy) -> Vec<FrameView<'_>> {
    if by != GroupBy::Stacks {
        views.truncate(1);
    }
    if by == GroupBy::Images {
        for view in &mut views {
            *view = FrameView { symbol: None, file: None, line: None, is_inlined: false, offset: 0, ..*view };
        }
    }
    views
}

/// Removes what differs between two stacks of a group.
fn join<'a>(told: &mut [FrameView<'a>], others: &[FrameView<'a>]) {
    for (frame, other) in told.iter_mut().zip(others) {
        frame.module = other.module;
        if frame.file != other.file {
            (frame.file, frame.line) = (None, None);
        } else if frame.line != other.line {
            frame.line = None;
        }
        frame.is_inlined &= other.is_inlined;
        if frame.offset != other.offset {
            frame.offset = 0;
        }
    }
}
