//! A frame with its callers and callees.

use hashbrown::HashMap;

use heapr_query::{CullList, GroupBy, Metric, Result};
use heapr_trace::Amounts;

use crate::explorer::Explorer;
use crate::frame_number::FrameNumber;
use crate::selection::Selection;

/// Amounts around a frame. A stack that holds the frame several times counts once for each of its
/// callers and callees there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// Amounts of the stacks that hold the frame.
    pub inclusive: Amounts,
    /// Amounts of the stacks whose innermost frame this is.
    pub own: Amounts,
    /// Frames that call the frame.
    pub callers: Vec<(FrameNumber, Amounts)>,
    /// Frames that the frame calls.
    pub callees: Vec<(FrameNumber, Amounts)>,
}

impl Explorer {
    /// The callers and callees of a frame after culling. If culling removes the frame from all
    /// stacks, those before culling.
    ///
    /// # Errors
    /// Never fails for results of [`Explorer::select`].
    pub fn neighbours(
        &self,
        selection: &Selection,
        cull: &CullList,
        frame: FrameNumber,
        sort: Metric,
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
        sort: Metric,
    ) -> Result<Neighbours> {
        let tree = self.tree();
        let mut is_set = vec![false; tree.frames.count()];
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
            let amounts = &row.amounts;
            found.inclusive += amounts;
            above.clear();
            below.clear();
            let mut inner: Option<u32> = None;
            for outer in tree.frames_of(stack).map(|frame| frame.0) {
                if outer == frame.0 {
                    match inner {
                        None => found.own += amounts,
                        Some(inner) => below.push(inner),
                    }
                }
                if inner == Some(frame.0) {
                    above.push(outer);
                }
                inner = Some(outer);
            }
            for (list, sums) in [(&mut above, &mut callers), (&mut below, &mut callees)] {
                list.sort_unstable();
                list.dedup();
                for &other in list.iter() {
                    *sums.entry(other).or_insert_with(Amounts::default) += amounts;
                }
            }
        })?;
        let sorted = |amounts: HashMap<u32, Amounts>| {
            let mut list: Vec<(FrameNumber, Amounts)> =
                amounts.into_iter().map(|(frame, amounts)| (FrameNumber(frame), amounts)).collect();
            list.sort_by_key(|&(frame, amounts)| (std::cmp::Reverse(sort.of(&amounts)), frame));
            list
        };
        found.callers = sorted(callers);
        found.callees = sorted(callees);
        Ok(found)
    }
}
