//! Source lines that a group sums: stacks of one function may differ in its lines alone.

use hashbrown::HashMap;
use heapr_query::{CullList, GroupBy, Result};

use crate::explorer::Explorer;
use crate::selection::Selection;

/// Largest number of lines that are listed for a group.
const LINES_MAX: usize = 200;

impl Explorer {
    /// Source lines of one frame of each stack group, ascending, over all stacks of the group. A
    /// group is the culled stack (the second number of [`Explorer::stack_key`]) and the index of
    /// the frame among its frames.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn group_lines(
        &self,
        selection: &Selection,
        cull: &CullList,
        groups: &[(u32, usize)],
    ) -> Result<Vec<Vec<u32>>> {
        let mut lines: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
        let places: HashMap<u32, usize> = groups.iter().map(|(node, _)| *node).zip(0..).collect();
        let tree = self.tree();
        self.culled(selection, cull, GroupBy::Stacks)?.for_each(|row, node| {
            let Some(&number) = places.get(&node) else { return };
            let views = tree.views(self.trace().as_ref(), row.stack, node);
            let line = views.get(groups[number].1).and_then(|view| view.line);
            let known = &mut lines[number];
            if let Some(line) = line.filter(|line| known.len() < LINES_MAX && !known.contains(line)) {
                known.push(line);
            }
        })?;
        lines.iter_mut().for_each(|lines| lines.sort_unstable());
        Ok(lines)
    }
}
