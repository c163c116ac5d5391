//! A frame with its callers and callees.

use hashbrown::HashMap;

use heapr_query::{CullList, GroupBy, Metrics, Result, SortKey};

use crate::explorer::{Explorer, FrameNumber};
use crate::selection::Selection;

/// Amounts around a frame. A stack in which it occurs several times counts once, for each of its callers and callees there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// Stacks that hold the frame.
    pub inclusive: Metrics,
    /// Stacks whose innermost frame it is.
    pub own: Metrics,
    /// The frames that call it.
    pub callers: Vec<(FrameNumber, Metrics)>,
    /// The frames that it calls.
    pub callees: Vec<(FrameNumber, Metrics)>,
}

impl Explorer {
    /// The callers and callees of a frame after culling; before it, if culling removes the frame from all stacks.
    ///
    /// # Errors
    /// Never for what [`Explorer::select`] made.
    pub fn neighbours(
        &self,
        selection: &Selection,
        cull: &CullList,
        frame: FrameNumber,
        sort: SortKey,
    ) -> Result<Neighbours> {
        let found = self.neighbours_in(selection, cull, frame, sort)?;
        if found.inclusive.total_count == 0 {
            return self.neighbours_in(selection, &CullList::empty(), frame, sort);
        }
        Ok(found)
    }

    fn neighbours_in(
        &self,
        selection: &Selection,
        cull: &CullList,
        frame: FrameNumber,
        sort: SortKey,
    ) -> Result<Neighbours> {
        let tree = self.tree();
        let mut is_set = vec![false; tree.frames.len()];
        if let Some(place) = is_set.get_mut(frame.0 as usize) {
            *place = true;
        }
        let has = tree.stacks_with(&is_set);
        let mut found = Neighbours::default();
        let (mut callers, mut callees) = (HashMap::new(), HashMap::new());
        let (mut above, mut below): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        self.culled(selection, cull, GroupBy::Stacks)?.for_each(|row, stack| {
            if !has[stack as usize] {
                return;
            }
            let metrics = Metrics::of(row);
            found.inclusive.add(&metrics);
            above.clear();
            below.clear();
            let mut inner: Option<u32> = None;
            for outer in tree.frames_of(stack).map(|frame| frame.0) {
                if outer == frame.0 {
                    match inner {
                        None => found.own.add(&metrics),
                        Some(inner) => below.push(inner),
                    }
                }
                if inner == Some(frame.0) {
                    above.push(outer);
                }
                inner = Some(outer);
            }
            for (list, amounts) in [(&mut above, &mut callers), (&mut below, &mut callees)] {
                list.sort_unstable();
                list.dedup();
                for &other in list.iter() {
                    amounts.entry(other).or_insert_with(Metrics::default).add(&metrics);
                }
            }
        })?;
        let sorted = |amounts: HashMap<u32, Metrics>| {
            let mut list: Vec<(FrameNumber, Metrics)> =
                amounts.into_iter().map(|(frame, metrics)| (FrameNumber(frame), metrics)).collect();
            list.sort_by_key(|&(frame, metrics)| (std::cmp::Reverse(sort.of(&metrics)), frame));
            list
        };
        found.callers = sorted(callers);
        found.callees = sorted(callees);
        Ok(found)
    }
}
